"""Telling others: addresses outside the hub that hear of changes, signed, tried again until they answer.

A change and what is to be told of it are written in one transaction; a job does the telling. What is told are names and
counts, never the text of a memory: who wants that asks the API with a key of their own.
"""
