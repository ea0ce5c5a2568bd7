#!/usr/bin/env python3
"""Is a random placement of keywords slow? Counts the matches of 100 queries on three nodes: `random_placement.py FILE`, a file of
queries as balance-sklik has it. Groups are made as there; a search asks all three nodes and waits for the slowest one."""

import random
import re
import statistics
import sys

GROUPS, KEYWORDS, BUCKETS, PLACEMENTS = 8000, 34, 256, 12


def read_queries(path):
    with open(path, "rb") as file:
        queries = [re.findall(r"[a-z0-9]+", line.partition(b"\t")[2].decode("latin-1")) for line in file]
    return [words for words in queries if words]


def make_keywords(queries, draw):
    """Returns pairs (group, words) of keywords by their first word."""
    found = {}
    for group in range(GROUPS):
        topics = [draw.choice(queries) for _ in range(3)]
        for _ in range(KEYWORDS // 3 + draw.randrange(KEYWORDS * 4 // 3 + 1)):
            topic = draw.choice(topics)
            length = 1 + draw.randrange(min(len(topic), 3))
            begin = draw.randrange(len(topic) - length + 1)
            found.setdefault(topic[begin], []).append((group, topic[begin:begin + length]))
    return found


def matches_of(query, keywords):
    """Returns how many keywords of each group match."""
    words, counts = set(query), {}
    for word in words:
        for group, keyword in keywords.get(word, ()):
            if words.issuperset(keyword):
                counts[group] = counts.get(group, 0) + 1
    return counts


def loads(nodes, matches):
    sums = [0, 0, 0]
    for group, count in matches.items():
        sums[nodes[group]] += count
    return sums


def show(name, matches, place):
    together, slowest = [], []
    for seed in range(PLACEMENTS):
        nodes = place(random.Random(seed))
        of_query = [loads(nodes, each) for each in matches]
        even = sum(map(sum, of_query)) / 3
        together.append(max(map(sum, zip(*of_query))) / even)
        slowest.append(sum(map(max, of_query)) / even)
    for what, values in (("matches of 100 queries, max/mean", together), ("slowest node of each query over an even share", slowest)):
        print(f"{name}: {what} {statistics.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})")


def main():
    draw = random.Random(1)
    queries = read_queries(sys.argv[1])
    keywords = make_keywords(queries, draw)
    matches = [matches_of(draw.choice(queries), keywords) for _ in range(100)]
    print(f"{statistics.mean(sum(each.values()) for each in matches):.0f} matches a query in {statistics.mean(map(len, matches)):.0f} groups")
    bucket = [draw.randrange(BUCKETS) for _ in range(GROUPS)]

    def by_bucket(choice):
        nodes = [choice.randrange(3) for _ in range(BUCKETS)]
        return [nodes[at] for at in bucket]
    show("each group on a random node", matches, lambda choice: [choice.randrange(3) for _ in range(GROUPS)])
    show("each bucket on a random node", matches, by_bucket)


if __name__ == "__main__":
    main()
