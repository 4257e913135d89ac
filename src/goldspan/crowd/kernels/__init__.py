"""Grouping and numbering the answers of large crowds, compiled by Numba: linear in the answers.

Imported where they are called, for crowds of `goldspan.crowd.grouping.LARGE` answers and more.
"""
