"""The tables, queries and rows that the stores on relational databases share."""
