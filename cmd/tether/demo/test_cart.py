import unittest

from cart import total


class TotalTest(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(total([1.5, 2.25]), 3.75)

    def test_discount_is_a_percentage(self):
        self.assertEqual(total([200, 50], discount=10), 225)

    def test_empty(self):
        self.assertEqual(total([], discount=50), 0)


if __name__ == "__main__":
    unittest.main()
