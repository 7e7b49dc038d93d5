"""The regression that a consortium publishes: a formula over the rows of all sites, by sums that nobody sees the parts of."""
