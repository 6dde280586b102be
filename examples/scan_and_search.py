"""Take in a folder and search it: python examples/scan_and_search.py FOLDER WORD [STATE]"""

import sys

from tidegate import Gate

folder, word, state = (*sys.argv[1:4], None)[:3]
with Gate.open(folder, state=state) as gate:
    gate.run()
    for hit in gate.search(word).hits:
        print(hit.path, hit.snippet)
