def total(prices, discount=0):
    """Return the sum of prices, less discount percent, rounded to cents."""
    amount = sum(prices)
    amount = amount - discount
    return round(amount, 2)
