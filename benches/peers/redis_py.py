"""redis-py's lock as a worker of `cargo bench --bench waiting`: `redis_py.py <url>`.

It speaks the lines that benches/src/worker/mod.rs describes.
"""

import asyncio
import os
import sys
import threading
import time

import redis.asyncio
from redis.asyncio.lock import Lock

# The pool's default of 100 connections is an error for the waiter after it.
CONNECTIONS = 1024
LEASE = 10


async def waiter(lock, at, section, limit, times):
    await asyncio.sleep((at - time.monotonic_ns()) / 1e9)
    done = 0
    while limit == 0 or done < limit:
        times["asked"] = asked = time.monotonic_ns()
        await lock.acquire()
        entered = time.monotonic_ns()
        if section:
            await asyncio.sleep(section / 1e6)
        times["asked"] = None
        times["sections"].append((asked, entered, time.monotonic_ns()))
        await lock.release()
        done += 1


async def cancel(tasks):
    """A task may take a cancellation for the end of its connection, and continue."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.05)


def write(at, logs):
    lines = []
    for number, times in enumerate(logs):
        for section in times["sections"]:
            asked, entered, left = (max(0, moment - at) for moment in section)
            lines.append(f"s {number} {asked} {entered} {left}\n")
        if times["asked"] is not None:
            lines.append(f"p {number} {max(0, times['asked'] - at)}\n")
    sys.stdout.writelines(lines)
    print("over", flush=True)


async def play(client, orders, at, key, waiters, section, limit):
    logs = [{"asked": None, "sections": []} for _ in range(waiters)]
    keys = [key.replace("*", f"{os.getpid()}.{number}") for number in range(waiters)]
    locks = [Lock(client, name, timeout=LEASE) for name in keys]
    tasks = [
        asyncio.create_task(waiter(lock, at, section, limit, times))
        for lock, times in zip(locks, logs)
    ]
    all_done, end = asyncio.gather(*tasks), asyncio.create_task(orders.get())
    await asyncio.wait([all_done, end], return_when=asyncio.FIRST_COMPLETED)
    if all_done.done():
        all_done.result()
        print("done", flush=True)
        await end
    await cancel(tasks)
    await asyncio.gather(all_done, return_exceptions=True)
    write(at, logs)


def read_orders(loop, orders):
    """Runs in a thread; the process ends with the one that commands it."""
    for line in sys.stdin:
        loop.call_soon_threadsafe(orders.put_nowait, line.split())
    os._exit(0)


async def main():
    orders = asyncio.Queue()
    arguments = (asyncio.get_running_loop(), orders)
    threading.Thread(target=read_orders, args=arguments, daemon=True).start()
    client = redis.asyncio.Redis.from_url(sys.argv[1], max_connections=CONNECTIONS)
    await client.ping()
    print("ready", flush=True)
    while True:
        match await orders.get():
            case ["start", at, key, waiters, section, limit]:
                numbers = (int(waiters), int(section), int(limit))
                await play(client, orders, int(at), key, *numbers)
            case ["end"]:
                pass


asyncio.run(main())
