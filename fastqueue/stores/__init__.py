"""The stores: memory, which is the contract as a program, and one for each database.

A store is imported by name, since each needs its driver; a queue makes one from a URL.
"""
