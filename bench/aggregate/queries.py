"""The queries of `./run bench aggregate`, as a specification for Fjord and as SQL. `{source}` is a table, or an
expression that reads the lines of JSON. All numbers are exact: sums are below 2^53, and a mean is a quotient that is
rounded once."""

QUERIES = {
    "count by city": {
        "spec": {"type": "place", "group_by": ["city"], "aggregates": ["count()"]},
        "sql": "SELECT city, count(*) AS count FROM {source} GROUP BY city",
    },
    "mean population by country": {
        "spec": {"type": "place", "group_by": ["country"], "aggregates": ["avg(population) AS mean"]},
        "sql": "SELECT country, avg(CAST(population AS double precision)) AS mean FROM {source} GROUP BY country",
    },
    "count and sum by number, each once": {
        "spec": {"type": "place", "group_by": ["number"], "aggregates": ["count()", "sum(population)"]},
        "sql": "SELECT number, count(*) AS count, CAST(sum(population) AS bigint) AS total FROM {source} GROUP BY number",
    },
}
