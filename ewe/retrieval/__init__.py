"""Finding passages: datastores and retrievers."""
