#!/usr/bin/env python3
"""Makes an advertising system and a week of its events from a seed, as feeds: structure.jsonl, impressions.jsonl and
clicks.jsonl. A click is a document, and an update of the impression that it belongs to: whether that was clicked, and what
it cost. Standard library only.

What makes it look like life: what people search for follows Zipf's law; days have a quiet night and a busy evening, and
weekends are quieter; keywords of the same text compete for four places in an auction, where each pays what the next one
would have had to bid; the second place is clicked about half as often as the first; some ads are better than others.
"""

import argparse
import bisect
import itertools
import json
import pathlib
import random

BEGIN = 1_700_438_400  # a Monday, midnight
HOURS = [2.1, 1.3, 0.9, 0.7, 0.7, 1.0, 1.9, 3.2, 4.4, 5.0, 5.3, 5.4, 5.2, 5.1, 5.1, 5.2, 5.4, 5.6, 6.0, 6.8, 7.3, 7.0, 5.6, 3.6]
WEEKDAYS = [1.0, 1.02, 1.03, 1.01, 0.95, 0.78, 0.82]
PLACES = [1.0, 0.52, 0.33, 0.21]  # how likely a click is there, over that in the first place
DEVICES = {"phone": (0.58, 1.1), "desktop": (0.36, 1.0), "tablet": (0.06, 0.8)}  # share, and how likely a click is
INDUSTRIES = {"travel": 0.9, "shoes": 0.5, "insurance": 4.2, "furniture": 0.8, "software": 2.4, "garden": 0.4, "books": 0.2}
THINGS = ["mask", "boots", "flight", "hotel", "policy", "sofa", "lamp", "novel", "rake", "seeds", "backup", "editor", "tent",
          "ticket", "cover", "table", "chair", "atlas", "hose", "router"]
KINDS = ["home-made", "cheap", "best", "used", "new", "small", "large", "online", "red", "green", "warm", "light", "safe"]
PLACES_AND_TIMES = ["", "near me", "for children", "for work", "in winter", "today", "as a gift", "with delivery"]


class Chooser:
    """Draws indices with given weights."""

    def __init__(self, weights):
        self.cumulative = list(itertools.accumulate(weights))

    def draw(self, generator):
        return min(bisect.bisect(self.cumulative, generator.random() * self.cumulative[-1]), len(self.cumulative) - 1)


def document_id(kind, number, place=None):
    """A group lies together with its keywords and ads, as searches need it; an advertiser with its campaigns."""
    location = "" if place is None else f"n={place}"
    return f"id:ads:{kind}:{location}:{number}"


class Structure:
    def __init__(self, generator, advertisers):
        self.feed = []
        self.keywords = []  # (number, advertiser, campaign, group, bid, ads of the group, quality)
        texts = [f"{kind} {thing} {rest}".strip() for kind in KINDS for thing in THINGS for rest in PLACES_AND_TIMES]
        generator.shuffle(texts)
        self.texts = texts
        for number, text in enumerate(texts):
            self.put(document_id("lexicon_entry", number), text=text)
        popularity = Chooser([1 / (rank + 1) ** 0.8 for rank in range(len(texts))])
        self.campaigns = self.groups = self.ads = 0
        for advertiser in range(advertisers):
            industry = generator.choice(list(INDUSTRIES))
            self.put(document_id("advertiser", advertiser, advertiser), name=f"{industry.capitalize()} {advertiser}", industry=industry)
            for _ in range(generator.randint(1, 5)):
                self.add_campaign(generator, advertiser, INDUSTRIES[industry], popularity)
        self.by_text = {}
        for keyword in self.keywords:
            self.by_text.setdefault(keyword["text"], []).append(keyword)

    def put(self, document, **fields):
        self.feed.append({"put": document, "fields": fields})

    def add_campaign(self, generator, advertiser, price, popularity):
        campaign = self.campaigns
        self.campaigns += 1
        self.put(document_id("campaign", campaign, advertiser), advertiser=advertiser, name=f"Campaign {campaign}",
                 daily_budget_micros=generator.randint(5, 500) * 1_000_000)
        for _ in range(generator.randint(1, 4)):
            group = self.groups
            self.groups += 1
            self.put(document_id("ad_group", group, group), advertiser=advertiser, campaign=campaign, name=f"Group {group}")
            ads = []
            for _ in range(generator.randint(1, 3)):
                ads.append((self.ads, generator.lognormvariate(0, 0.35)))
                text = self.texts[popularity.draw(generator)]
                self.put(document_id("ad", self.ads, group), advertiser=advertiser, ad_group=group, title=text.capitalize(),
                         text=f"All about {text}.")
                self.ads += 1
            for text in sorted({popularity.draw(generator) for _ in range(generator.randint(3, 14))}):
                bid = int(price * generator.lognormvariate(0, 0.6) * 1_000_000)
                number = len(self.keywords)
                self.put(document_id("keyword", number, group), advertiser=advertiser, ad_group=group, lexicon_entry=text,
                         text=self.texts[text], match="broad", bid_micros=bid)
                self.keywords.append({"number": number, "advertiser": advertiser, "campaign": campaign, "group": group, "text": text,
                                      "bid": bid, "ads": ads})


def events(generator, structure, impressions):
    """Yields an impression, and its click or None."""
    queries = Chooser([1 / (rank + 1) for rank in range(len(structure.texts))])
    hours = Chooser([HOURS[hour % 24] * WEEKDAYS[hour // 24] for hour in range(7 * 24)])
    devices = Chooser([share for share, _ in DEVICES.values()])
    number = 0
    while number < impressions:
        query = queries.draw(generator)
        candidates = structure.by_text.get(query)
        if not candidates:
            continue
        device = list(DEVICES)[devices.draw(generator)]
        second = BEGIN + hours.draw(generator) * 3600 + generator.randrange(3600)
        # The ad that would be shown for each keyword, and how much it would bring.
        auction = []
        for keyword in candidates:
            ad, quality = generator.choice(keyword["ads"])
            auction.append((keyword["bid"] * quality * generator.uniform(0.8, 1.2), keyword["number"], keyword, ad, quality))
        auction.sort(key=lambda entry: entry[:2], reverse=True)
        for place, (worth, _, keyword, ad, quality) in enumerate(auction[:len(PLACES)]):
            if number == impressions:
                return
            impression = {"advertiser": keyword["advertiser"], "campaign": keyword["campaign"], "ad_group": keyword["group"],
                          "keyword": keyword["number"], "ad": ad, "query": query, "position": place + 1, "device": device,
                          "shown_at": second, "clicked": False, "cost_micros": 0}
            click = None
            if generator.random() < min(0.9, 0.08 * PLACES[place] * quality * DEVICES[device][1]):
                next_worth = auction[place + 1][0] if place + 1 < len(auction) else worth * 0.3
                click = {"impression": document_id("impression", number), "advertiser": keyword["advertiser"],
                         "keyword": keyword["number"], "clicked_at": second + generator.randint(1, 90),
                         "cost_micros": max(10_000, int(next_worth / quality))}
            yield number, impression, click
            number += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the feeds go")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--advertisers", type=int, default=60)
    parser.add_argument("--impressions", type=int, default=30_000)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(arguments.seed)
    structure = Structure(generator, arguments.advertisers)
    with open(arguments.folder / "structure.jsonl", "w") as feed:
        feed.writelines(json.dumps(operation) + "\n" for operation in structure.feed)
    clicks = 0
    with open(arguments.folder / "impressions.jsonl", "w") as shown, open(arguments.folder / "clicks.jsonl", "w") as clicked:
        for number, impression, click in events(generator, structure, arguments.impressions):
            shown.write(json.dumps({"put": document_id("impression", number), "fields": impression}) + "\n")
            if click is None:
                continue
            clicked.write(json.dumps({"put": document_id("click", clicks), "fields": click}) + "\n")
            clicked.write(json.dumps({"update": click["impression"],
                                      "fields": {"clicked": {"assign": True}, "cost_micros": {"assign": click["cost_micros"]}}}) + "\n")
            clicks += 1
    print(f"{len(structure.feed)} documents of the structure, {arguments.impressions} impressions, {clicks} clicks")


if __name__ == "__main__":
    main()
