"""How many to ask about an item, and whom: stopping rules, the next answers, replays.

Its public names are those of `goldspan.hiring`.
"""
