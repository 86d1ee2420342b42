"""Adds commands to the queue of one of these apps, for whoever starts it: one, many, or each as it comes.

add.py APP one COMMAND      add.py APP many <lines      add.py APP live: says for each line when it asked for it
"""

import importlib
import sys
import time

app = importlib.import_module(sys.argv[1])
if sys.argv[2] == "one":
    app.add(sys.argv[3])
elif sys.argv[2] == "many":
    app.add_many(sys.stdin.read().splitlines())
else:
    for line in sys.stdin:
        asked = time.perf_counter()
        app.add(line.rstrip("\n"))
        print(asked, flush=True)
