"""What schemathesis does differently for a cluster that has to live: no node goes, and streams end."""

import schemathesis

# The documents that changes by selection are for.
FEW = "item.sold < 5"


@schemathesis.hook
def before_call(_, case, __):
    path, query = case.operation.path, case.query if isinstance(case.query, dict) else {}
    if path == "/changes/v1":
        case.query = {**query, "once": "true"}
    elif path == "/cluster/v1/nodes/progress":
        case.query = {**query, "action": "up"}  # It is done at once.
    elif path == "/cluster/v1/tuner/advice":
        case.query = {**query, "sample": "10ms"}
    elif path == "/cluster/v1/nodes" and isinstance(case.body, dict):
        case.body = {**case.body, "dry_run": True}
    elif path == "/jobs/v1" and isinstance(case.body, dict):
        case.body = {**case.body, "detached": True}
    elif path.startswith("/document/v1/") and path.endswith("/") and case.method != "GET" and query.get("selection"):
        case.query = {**query, "selection": FEW}  # Most random selections are malformed, and `true` is all documents.


@schemathesis.check
def errors_say_what_is_wrong(_, response, case):
    """No request makes the gateway fail. What the cluster cannot do now has a code."""
    if response.status_code < 400:
        return
    assert response.status_code < 500 or response.status_code in (503, 504), f"status {response.status_code}"
    # Clients of Vespa want no message for a document that is not there.
    is_missing = response.status_code == 404 and case.operation.path.startswith("/document/v1/")
    if is_missing or response.request.method == "HEAD":
        return
    answer = response.json()
    assert answer["message"], answer
    assert response.status_code < 500 or answer["code"], answer
