"""The lock of redis-py, told what to do by one line after the other; each is answered by one.

    python redis_py_lock.py URL NAME

    acquire SECONDS   True or False: one try, without waiting
    owned             True or False: whether the lock is still this one's
    release           released, or the name of the exception
    count TIMES       counted: so often under the lock, reads `count`, waits, and writes it back
    share SECONDS NAME...
                      the sections of each lock, taken again and again for so long, each by a thread: a section
                      counts in `inside:NAME` that it has begun and ended, and `overlap` is the answer of a lock
                      with two of them at a time
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import redis

client = redis.from_url(sys.argv[1])
lock = None


def new_lock(seconds):
    return client.lock(sys.argv[2], timeout=seconds, sleep=0.002)


def release():
    try:
        lock.release()
    except redis.exceptions.LockError as error:
        return type(error).__name__
    return "released"


def count(times):
    for _ in range(times):
        with new_lock(300):
            number = int(client.get("count"))
            time.sleep(0.002)
            client.set("count", number + 1)
    return "counted"


def share(name, end):
    sections = 0
    while time.monotonic() < end:
        with client.lock(name, timeout=300, sleep=0.002):
            if client.incr("inside:" + name) != 1:
                return "overlap"
            time.sleep(0.002)
            client.decr("inside:" + name)
        sections += 1
        time.sleep(0.02)
    return str(sections)


def share_all(seconds, names):
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(len(names)) as threads:
        return " ".join(threads.map(lambda name: share(name, end), names))


for line in sys.stdin:
    match line.split():
        case ["acquire", seconds]:
            lock = new_lock(float(seconds))
            answer = lock.acquire(blocking=False)
        case ["owned"]:
            answer = lock.owned()
        case ["release"]:
            answer = release()
        case ["count", times]:
            answer = count(int(times))
        case ["share", seconds, *names]:
            answer = share_all(float(seconds), names)
    print(answer, flush=True)
