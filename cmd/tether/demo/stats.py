def average(numbers):
    """Return the mean of numbers; 0 for an empty list."""
    return sum(numbers) / len(numbers)
