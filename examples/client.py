"""Show how far a campaign is, decide what is certain enough, and fetch its labels.

GOLDSPAN_TOKEN=gst_… python examples/client.py https://labels.example.org
"""

import sys

from goldspan.client import Client, FoundSpan

with Client(sys.argv[1]) as desk:  # the token is that of GOLDSPAN_TOKEN
    now = desk.overview()
    print(f"{now.title}: {now.state}, {now.items.answered} of {now.items.pool} items")
    for item in desk.uncertain(limit=3):
        print(f"uncertain ({item.found.confidence:.2f}): {item.text}")
        best = item.found.alternatives[0] if item.found.alternatives else None
        if best is not None and best.confidence > 0.9:
            if isinstance(best, FoundSpan):
                desk.decide(item.item, spans=[best])
            else:
                desk.decide(item.item, label=best.label)
    reported = [row.item for row in desk.items(state="flagged")]
    print(f"reported by annotators: {reported}")
    labels = next(file.name for file in desk.files() if file.name.startswith("gold."))
    print(f"written: {desk.download(labels, '.')}")
