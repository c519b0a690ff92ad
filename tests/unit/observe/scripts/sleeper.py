"""No hang: sleeps. argv[1]: time | select | poll | asyncio"""

import asyncio
import select
import sys
import time

SECONDS = 7
print("START", flush=True)
if sys.argv[1] == "time":
    time.sleep(SECONDS)
elif sys.argv[1] == "select":  # how Python 3.10 and older sleep
    select.select([], [], [], SECONDS)
elif sys.argv[1] == "poll":
    select.poll().poll(SECONDS * 1000)
else:
    asyncio.run(asyncio.sleep(SECONDS))
print("DONE", flush=True)
