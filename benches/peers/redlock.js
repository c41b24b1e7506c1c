// redlock as a worker of `cargo bench --bench waiting`: `redlock.js <url>`.
//
// It speaks the lines that benches/src/worker/mod.rs describes.
"use strict";

const readline = require("readline");
const { setTimeout: sleep } = require("timers/promises");
const Redis = require("ioredis");
const Redlock = require("redlock");

const LEASE = 10_000;
const FOR_EVER = -1;

async function waiter(redlock, key, { at, section, limit }, times) {
  await sleep(Number(at - process.hrtime.bigint()) / 1e6);
  for (let done = 0; limit === 0 || done < limit; done++) {
    const asked = (times.asked = process.hrtime.bigint());
    const lock = await redlock.acquire(key, LEASE);
    const entered = process.hrtime.bigint();
    if (section > 0) await sleep(section / 1000);
    times.asked = null;
    times.sections.push([asked, entered, process.hrtime.bigint()]);
    await lock.unlock();
    if (redlock.isOver) return;
  }
}

function write(at, logs) {
  const since = (moment) => (moment > at ? moment - at : 0n);
  const lines = [];
  logs.forEach(({ asked, sections }, number) => {
    for (const section of sections) lines.push(`s ${number} ${section.map(since).join(" ")}`);
    if (asked !== null) lines.push(`p ${number} ${since(asked)}`);
  });
  process.stdout.write([...lines, "over", ""].join("\n"));
}

// A promise cannot be dropped: without retries left, those who still wait give up at their next try.
async function finish(redlock, tasks, logs) {
  const copies = logs.map(({ asked, sections }) => ({ asked, sections: [...sections] }));
  redlock.isOver = true;
  redlock.retryCount = 0;
  await Promise.allSettled(tasks);
  return copies;
}

async function play(client, nextOrder, terms) {
  const redlock = new Redlock([client], { retryCount: FOR_EVER });
  const logs = Array.from({ length: terms.waiters }, () => ({ asked: null, sections: [] }));
  const keyOf = (number) => terms.key.replace("*", `${process.pid}.${number}`);
  const tasks = logs.map((times, number) => waiter(redlock, keyOf(number), terms, times));
  const end = nextOrder();
  const sayDone = () => redlock.isOver || process.stdout.write("done\n");
  Promise.all(tasks).then(sayDone, () => {});
  await end;
  write(terms.at, await finish(redlock, tasks, logs));
}

// The process ends with the one that commands it.
function orders() {
  const lines = [];
  let wanted = null;
  const take = () => {
    if (wanted === null || lines.length === 0) return;
    const give = wanted;
    wanted = null;
    give(lines.shift().split(" "));
  };
  const reader = readline.createInterface({ input: process.stdin });
  reader.on("line", (line) => (lines.push(line), take()));
  reader.on("close", () => process.exit(0));
  return () => new Promise((resolve) => ((wanted = resolve), take()));
}

async function main() {
  const client = new Redis(process.argv[2]);
  await client.ping();
  const nextOrder = orders();
  process.stdout.write("ready\n");
  for (;;) {
    const [verb, at, key, ...numbers] = await nextOrder();
    if (verb !== "start") continue;
    const [waiters, section, limit] = numbers.map(Number);
    await play(client, nextOrder, { at: BigInt(at), key, waiters, section, limit });
  }
}

main();
