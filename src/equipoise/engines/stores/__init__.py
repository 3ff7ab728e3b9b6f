"""Tables that are not files of this machine: object stores, Delta and Iceberg tables, read only."""
