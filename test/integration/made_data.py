"""Tables in the form of the shared data sets, for tests that run where those are not: the same columns, as many rows, uneven
groups, missing values, names that need quoting and other scripts. Each table depends on its seed alone."""

import csv
import random

MAKES = {"ford": 18_000, "vw": 15_000, "vauxhall": 13_600, "mercedes": 13_100, "bmw": 10_800, "audi": 10_700, "toyota": 6_700, "skoda": 6_300, "hyundai": 4_987}
WORDS = ("Aurea", "Borea", "Cielo", "Dorado", "Elba", "Fjell", "Gala", "Havn", "Ístra", "Jura", "Kyoto", "Łódź", "Mira", "Nord", "Øst", "Põhja", "Río, Alta",
         "Santa \"Nova\"", "Tokaj", "Ural", "Vila", "West", "Ýmir", "Zürich", "札幌", "Αθήνα", "Киев")


def used_cars(file):
    draw = random.Random(20070601)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("make", "model", "year", "price", "transmission", "mileage", "fuelType", "tax", "mpg", "engineSize"))
    makes = [make for make, count in MAKES.items() for _ in range(count)]
    draw.shuffle(makes)
    for make in makes:
        model = f"{WORDS[min(int(draw.expovariate(0.35)), 20)]} {make[:1].upper()}"
        year = 2020 - min(int(draw.expovariate(0.4)), 24)
        price = max(450, int(draw.lognormvariate(9.4, 0.5)))
        tax = "" if draw.random() < 0.09 else draw.choice((0, 20, 125, 145, 150, 200))
        mpg = "" if draw.random() < 0.09 else f"{draw.uniform(20, 80):.1f}"
        writer.writerow((make, model, year, price, draw.choices(("Manual", "Semi-Auto", "Automatic", "Other"), (57, 22, 20, 1))[0],
                         int(draw.expovariate(1 / 23_000)), draw.choices(("Petrol", "Diesel", "Hybrid", "Other"), (55, 41, 3, 1))[0], tax, mpg,
                         draw.choice((1.0, 1.2, 1.4, 1.6, 2.0, 2.1, 3.0))))


def world_cities(file):
    draw = random.Random(20070602)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("name", "country", "subcountry", "geonameid"))
    for number in range(34_032):
        country = min(int(draw.expovariate(0.03)), 244)
        subcountry = "" if country > 200 else f"{WORDS[(country + number) % 7]} {country % 12}"
        name = WORDS[country % len(WORDS)].replace('"', "")
        writer.writerow((f"{draw.choice(WORDS)} {draw.choice(WORDS)}", f"{name} {country}", subcountry, 100_000 + 7 * number))


TABLES = {"used-cars.csv": used_cars, "world-cities.csv": world_cities}
