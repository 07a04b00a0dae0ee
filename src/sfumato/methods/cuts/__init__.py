"""The method cuts: global recoding by groups of neighbouring values."""
