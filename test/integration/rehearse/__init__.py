"""A rehearsal: what a cluster of real processes says of itself is put to the test, mostly on a copy of its folders.

`rehearse_test.py` is the program; docs/testing.md says what is tested.

| file | |
|---|---|
| `cluster.py` | the processes and folders of a cluster, or of a copy |
| `isolation.py` | the network of a copy, in which it has the addresses of the original |
| `record.py` | what was acknowledged, kept outside of the cluster, and the load |
| `looks.py` | reading a cluster in every way, and comparing it with the record |
| `days.py` | bad days: faults that are drawn |
| `claims.py`, `claims_of_faults.py` | what the cluster says, and what must then hold |
| `world.py` | one rehearsal: cluster, load, record, history |
"""
