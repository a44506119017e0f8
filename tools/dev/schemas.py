#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/docs/schemas.json.gz: JSON schemas from two PyPI packages, with which tests validate examples/containers.

    pip download --no-deps -d . kubernetes-validate check-jsonschema
    tools/dev/schemas.py kubernetes_validate-*.whl check_jsonschema-*.whl

The tests do not require the packages themselves: the first one contains 17,000 files. Both schemas are licensed under Apache 2.0.
Descriptions are removed.
"""
import gzip
import json
import re
import sys
import zipfile
from pathlib import Path

OUT = Path(__file__).resolve().parents[2] / "tests/docs/schemas.json.gz"
KINDS = ("deployment-apps-v1", "statefulset-apps-v1", "service-v1", "horizontalpodautoscaler-autoscaling-v2",
         "poddisruptionbudget-policy-v1")


def bare(schema):
    """Removes the descriptions from a schema, but not properties with the name `description`."""
    if isinstance(schema, list):
        return [bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: {each: bare(one) for each, one in value.items()} if name in ("properties", "definitions", "$defs", "patternProperties")
            else bare(value)
            for name, value in schema.items() if name not in ("description", "$id") or not isinstance(value, str)}


REFERENCE = re.compile(r'"(?:/api/_definitions\.json)?#/\$defs/([^"]+)"')


def references(schema):
    return set(REFERENCE.findall(json.dumps(schema)))


def kubernetes(wheel):
    version = max((name.split("/")[2] for name in wheel.namelist() if name.endswith("-local-strict/_definitions.json")),
                  key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    folder = f"kubernetes_validate/kubernetes-json-schema/{version}"
    everything = json.loads(wheel.read(f"{folder}/_definitions.json"))["$defs"]
    kinds = {kind: bare(json.loads(wheel.read(f"{folder}/{kind}.json"))) for kind in KINDS}
    definitions, wanted = {}, references(kinds)
    while wanted:
        name = wanted.pop()
        definitions[name] = bare(everything[name])
        wanted |= references(definitions[name]) - set(definitions)
    text = json.dumps({"kinds": kinds, "definitions": definitions})
    return {"from": version, **json.loads(REFERENCE.sub(r'"#/definitions/\1"', text))}


def compose(wheel):
    return bare(json.loads(wheel.read("check_jsonschema/builtin_schemas/vendor/compose-spec.json")))


def main():
    validate, check = (zipfile.ZipFile(path) for path in sys.argv[1:])
    schemas = {"kubernetes": kubernetes(validate), "compose": compose(check)}
    OUT.write_bytes(gzip.compress(json.dumps(schemas, sort_keys=True, separators=(",", ":")).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
