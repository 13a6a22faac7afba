"""A stand-in for Elasticsearch and OpenSearch: the calls that the engine makes, over HTTP, and a refusal of others."""

import json
import math
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

_BULK = 1 << 22  # bytes


class SearchServer(ThreadingHTTPServer):
    """One node with its indexes in memory. kind: whose vector fields and queries it understands."""

    daemon_threads = True

    def __init__(self, kind):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kind, self.indexes, self.calls, self.tokens, self.refuse = kind, {}, Counter(), set(), 0
        self.shards, self.foreign = {"total": 3, "successful": 3, "skipped": 0, "failed": 0}, None

    @property
    def address(self):
        return f"{self.kind}+http://127.0.0.1:{self.server_port}/passages"


@contextmanager
def search_server(kind):
    with SearchServer(kind) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


class _Refusal(Exception):  # noqa: N818
    pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body of an answer are two writes

    def log_message(self, *_):
        pass

    def _answer(self):
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        assert len(body) < _BULK
        parts = self.path.partition("?")[0].strip("/").split("/")
        name, action = parts[0], parts[1] if len(parts) > 1 else ""
        server.tokens.add(self.headers.get("Authorization"))
        server.calls[f"{self.command} {action}"] += 1
        lines = [json.loads(line) for line in body.decode().splitlines()]
        try:
            if server.refuse:
                server.refuse -= 1
                self._send(429, {"error": "too busy"})
            elif server.foreign is not None:
                self._send(200, server.foreign)
            elif name not in server.indexes and (self.command, action) != ("PUT", ""):
                self._send(404, {"error": {"type": "index_not_found_exception", "reason": f"no such index [{name}]"}})
            else:
                self._send(200, getattr(self, f"_{self.command}{action}".lower())(name, lines))
        except (_Refusal, AttributeError) as error:
            self._send(400, {"error": {"type": "illegal_argument_exception", "reason": str(error)}})

    do_GET = do_PUT = do_POST = _answer  # noqa: N815

    def _send(self, status, answer):
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if status == 429:
            self.send_header("Retry-After", "86400")
        self.end_headers()
        self.wfile.write(data)

    def _put(self, name, lines):
        [body] = lines
        field = body["mappings"]["properties"].get("vector")
        wanted = {"elasticsearch": ("dense_vector", "dims"), "opensearch": ("knn_vector", "dimension")}
        kind, size = wanted[self.server.kind]
        if field is not None and (field["type"] != kind or not field[size] > 0):
            raise _Refusal(f"no handler for the type of {field}")
        if field is not None and kind == "knn_vector" and body["settings"]["index"].get("knn") is not True:
            raise _Refusal("index.knn is not set")
        self.server.indexes[name] = {"mappings": body["mappings"], "documents": {}, "visible": {}}
        return {"acknowledged": True}

    def _get_mapping(self, name, _):
        return {name: {"mappings": self.server.indexes[name]["mappings"]}}

    def _get_count(self, name, _):
        return {"count": len(self.server.indexes[name]["visible"]), "_shards": self.server.shards}

    def _post_refresh(self, name, _):
        index = self.server.indexes[name]
        index["visible"] = dict(index["documents"])
        return {}

    def _post_mget(self, name, lines):
        documents = self.server.indexes[name]["documents"]
        assert self.path.endswith("?_source=digest")
        return {
            "docs": [
                {"_id": key, "found": True, "_source": {"digest": documents[key]["digest"]}}
                if key in documents
                else {"_id": key, "found": False}
                for key in lines[0]["ids"]
            ]
        }

    def _post_bulk(self, name, lines):
        index = self.server.indexes[name]
        known, items = index["mappings"]["properties"], []
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            unknown = document.keys() - known.keys()
            error = {"error": {"reason": f"dynamic introduction of {unknown} is not allowed"}} if unknown else {}
            if not unknown:
                index["documents"][action["index"]["_id"]] = document
            items.append({"index": error})
        return {"errors": any("error" in item["index"] for item in items), "items": items}

    def _post_msearch(self, name, lines):
        documents = list(self.server.indexes[name]["visible"].values())
        searches = zip(lines[::2], lines[1::2], strict=True)
        return {"responses": [self._search(documents, header, body) for header, body in searches]}

    def _search(self, documents, header, body):
        clause, conditions = _asked(self.server.kind, body)
        assert header == {"search_type": "dfs_query_then_fetch" if "match" in clause else "query_then_fetch"}
        found = [each for each in documents if all(_meets(each, condition) for condition in conditions)]
        if "match" in clause:
            scores = _word_scores(documents, found, clause["match"]["words"].split())
        else:
            products = [float(np.dot(each["vector"], clause["vector"])) for each in found]
            scores = [x + 1 if x >= 0 else 1 / (1 - x) for x in products]
        ranked = sorted(zip(scores, found, strict=True), key=lambda pair: -pair[0])[: body["size"]]
        hits = [
            {"_score": score, "_source": {name: each[name] for name in body["_source"]}}
            for score, each in ranked
            if score > 0
        ]
        return {"timed_out": False, "_shards": self.server.shards, "hits": {"hits": hits}}


def _asked(kind, body):
    """What is looked for, and the conditions, of a search in one of the three forms."""
    query = body.get("query", {})
    if "bool" in query:
        return query["bool"]["must"], query["bool"]["filter"]
    if kind == "opensearch":
        nearest = query["knn"]["vector"]
        assert nearest["k"] >= body["size"]
        return {"vector": nearest["vector"]}, nearest["filter"]["bool"]["filter"]
    nearest = body["knn"]
    assert nearest["num_candidates"] >= nearest["k"] == body["size"]
    return {"vector": nearest["query_vector"]}, nearest["filter"]


def _meets(document, condition):
    [(kind, asked)] = condition.items()
    if kind == "bool":
        return not _meets(document, asked["must_not"])
    [(name, value)] = asked.items()
    if kind == "range":
        return document[name] >= value.get("gte", -math.inf) and document[name] <= value.get("lte", math.inf)
    values = document[name] if isinstance(document[name], list) else [document[name]]
    return bool({*values} & {*value}) if kind == "terms" else document[name].startswith(value)


def _word_scores(documents, found, query):
    """BM25 in Lucene's form, with k1 = 1.5 and b = 0.75."""
    counts = [Counter(each["words"].split()) for each in documents]
    mean = sum(count.total() for count in counts) / len(counts)
    frequency = {word: sum(word in count for count in counts) for word in query}
    scores = []
    for each in found:
        count = Counter(each["words"].split())
        norm = 1.5 * (0.25 + 0.75 * count.total() / mean)
        idf = {word: math.log(1 + (len(counts) - n + 0.5) / (n + 0.5)) for word, n in frequency.items()}
        scores.append(sum(idf[word] * count[word] / (count[word] + norm) for word in query if word in count))
    return scores
