"""The built-in fictional encyclopedia, its datastore and its model."""
