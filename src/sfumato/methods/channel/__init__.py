"""The method `channel`: randomized response, from the search for matrices to estimates from disguised columns."""
