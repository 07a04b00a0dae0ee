"""The cheapest swaps within bounds."""
