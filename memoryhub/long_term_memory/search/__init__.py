"""Finding memories: the term index of each database, the embedders, and the steps from a query to a ranked page."""
