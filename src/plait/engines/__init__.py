"""The database side: the only place where database drivers are imported."""
