# SPDX-License-Identifier: Apache-2.0
"""examples/containers: the manifests match the schemas of Kubernetes and Compose, and are consistent with each other
and with the configuration. Autoscaling uses metrics that a running server exports. The service reads its passwords
from files."""
import copy
import gzip
import json
import re
import shutil
import subprocess

import pytest

import postgres_server
import prometheus
import redis_server
import services
from backend import Backend, response
from monkey import ROOT, SECONDS
from proc import wait_until

jsonschema = pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")

FOLDER = ROOT / "examples" / "containers"
SCHEMAS = json.loads(gzip.decompress((ROOT / "tests/docs/schemas.json.gz").read_bytes()))
MANIFEST = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SITE = yaml.safe_load((FOLDER / "site/compose.yaml").read_text())
ADAPTER = yaml.safe_load((FOLDER / "adapter.yaml").read_text())
CONFIGURATION = (FOLDER / "monkey.conf").read_text()


def named(kind, name="notes"):
    item, = (each for each in MANIFEST if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return item


def pod(name="notes"):
    return named("Deployment" if name == "notes" else "StatefulSet", name)["spec"]["template"]["spec"]


def container(name="notes"):
    item, = pod(name)["containers"]
    return item


# ---- Schemas ----

def schema_errors(document, schema, definitions=None):
    schema = {**schema, **({"definitions": definitions} if definitions else {})}
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return sorted(error.json_path for error in validator(schema).iter_errors(document))


def kubernetes_errors(document):
    group, _, version = document["apiVersion"].rpartition("/")
    kind = "-".join(filter(None, (document["kind"].lower(), group.split(".")[0], version)))
    return schema_errors(document, SCHEMAS["kubernetes"]["kinds"][kind], SCHEMAS["kubernetes"]["definitions"])


def test_manifest_validates_against_the_kubernetes_schemas():
    assert len(MANIFEST) == 8
    for document in MANIFEST:
        assert not kubernetes_errors(document), document["metadata"]["name"]


def test_schemas_reject_invalid_documents():
    broken = copy.deepcopy(named("Deployment"))
    first, = broken["spec"]["template"]["spec"]["containers"]
    first["readinesProbe"] = first.pop("readinessProbe")
    first["ports"][0]["containerPort"] = "http"
    at = "$.spec.template.spec.containers[0]"
    assert kubernetes_errors(broken) == [at, f"{at}.ports[0].containerPort"]
    broken = copy.deepcopy(named("HorizontalPodAutoscaler"))
    del broken["spec"]["maxReplicas"]
    assert kubernetes_errors(broken) == ["$.spec"]
    broken = copy.deepcopy(COMPOSE)
    broken["services"]["one"]["port"] = []
    assert schema_errors(broken, SCHEMAS["compose"]) == ["$.services.one"]


def test_compose_files_validate_against_their_schema():
    assert not schema_errors(COMPOSE, SCHEMAS["compose"])
    assert not schema_errors(SITE, SCHEMAS["compose"])


def test_site_and_its_application_are_served(monkey):
    """The configuration of the compose file, with the paths and ports of this test."""
    web = SITE["services"]["web"]
    mounts = dict(volume.split(":")[:2] for volume in web["volumes"])
    assert web["build"]["target"] == "server" and (FOLDER / "site" / web["build"]["context"]).resolve() == ROOT
    text = (FOLDER / "site/monkey.conf").read_text()
    assert mounts["./html"] in text and (FOLDER / "site/html/index.html").exists()
    assert f'{web["depends_on"][0]}:{SITE["services"]["app"]["command"][-1]}' in text
    with Backend(lambda request: response(f"app {request.target}".encode())) as app:
        server = monkey(args=["-c", FOLDER / "site/monkey.conf"],
                        environment={"PORT": "0", "APP": app.address, "SITE": str(FOLDER / "site/html"), "WORKERS": "1"})
        assert "It works" in server.get("/").text
        assert server.get("/app/x?y=1").text == "app /x?y=1"


# ---- Consistency ----

def test_manifest_references_resolve():
    for name in ("notes", "redis", "postgres"):
        service, template = named("Service", name), pod(name)
        ports = {port["name"]: port["containerPort"] for port in container(name)["ports"]}
        whole = named("Deployment" if name == "notes" else "StatefulSet", name)["spec"]
        labels = whole["template"]["metadata"]["labels"]
        assert service["spec"]["selector"] == labels == whole["selector"]["matchLabels"]
        assert all(port.get("targetPort", port["name"]) in ports for port in service["spec"]["ports"])
        probes = [value for key, value in container(name).items() if key.endswith("Probe")]
        assert probes and all(probe["httpGet"]["port"] in ports for probe in probes if "httpGet" in probe)
        volumes = {volume["name"] for volume in template["volumes"]}
        volumes |= {claim["metadata"]["name"] for claim in whole.get("volumeClaimTemplates", ())}
        assert {mount["name"] for mount in container(name)["volumeMounts"]} == volumes
        assert template["automountServiceAccountToken"] is False  # otherwise the token's volume would hide the secrets
    target = named("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert named(target["kind"], target["name"])["apiVersion"] == target["apiVersion"]
    assert named("PodDisruptionBudget")["spec"]["selector"] == named("Deployment")["spec"]["selector"]
    leaving = re.search(r"sleep (\d+)", container()["lifecycle"]["preStop"]["exec"]["command"][-1])
    probe = container()["readinessProbe"]
    assert int(leaving[1]) > probe["periodSeconds"] * probe["failureThreshold"], "the service drops the pod before it ends"
    reference = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    drain = int(re.search(r"^\| `DrainTimeout` \|[^|]*\| `(\d+)` ", reference, re.MULTILINE)[1])
    assert pod()["terminationGracePeriodSeconds"] > int(leaving[1]) + drain


def variables():
    """Returns the variables of the configuration and their default values."""
    return dict(re.findall(r"\$\{(\w+):-([^}]*)\}", CONFIGURATION))


def keys(section):
    return dict(line.split(None, 1) for line in re.findall(rf"^{re.escape(section)}\n((?:    .*\n)+)", CONFIGURATION, re.MULTILINE)[-1]
                .splitlines() if not line.strip().startswith("#"))


def test_configuration_agrees_with_the_manifests():
    known = variables()
    assert {item["name"] for item in container()["env"]} <= set(known)
    assert set(COMPOSE["x-node"]["environment"]) <= set(known)
    ports = {port["name"]: str(port["containerPort"]) for port in container()["ports"]}
    assert (ports["http"], ports["admin"]) == (known["PORT"], known["ADMIN_PORT"])
    annotations = named("Deployment")["spec"]["template"]["metadata"]["annotations"]
    metrics = keys("[METRICS]")
    assert (annotations["prometheus.io/port"], annotations["prometheus.io/path"]) == (ports["admin"], metrics["Metrics"])
    assert {probe["httpGet"]["path"] for key, probe in container().items() if key.endswith("Probe")} == {metrics["Health"], metrics["Ready"]}
    assert f"touch {metrics['NotReadyFile']};" in container()["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert known["REDIS"] == "{}:{}".format("redis", named("Service", "redis")["spec"]["ports"][0]["port"])
    assert known["POSTGRES"].startswith("host=postgres ") and {"redis", "postgres"} <= set(COMPOSE["services"])
    files = set(re.findall(r"file:\$\{SECRETS:-/run/secrets\}/(\S+)", CONFIGURATION))
    assert files == set(COMPOSE["secrets"]) == set(COMPOSE["x-node"]["secrets"]) == {"redis-password", "postgres-password"}
    for text in (FOLDER / "kubernetes.yaml").read_text(), (FOLDER / "compose.yaml").read_text():
        assert set(re.findall(r"/run/secrets/([\w-]+)", text)) == files
    workers = int(next(item["value"] for item in container()["env"] if item["name"] == "WORKERS"))
    nodes = named("HorizontalPodAutoscaler")["spec"]["maxReplicas"] + 1  # one more node runs during a rolling update
    # PostgreSQL reserves 3 connections for superusers.
    most = int(re.search(r"max_connections=(\d+)", container("postgres")["args"][-1])[1]) - 3
    assert nodes * workers * 4 <= most, "the default of PoolSize"
    assert int(container()["resources"]["requests"]["cpu"]) == workers


def test_manifests_use_the_same_images():
    for name in ("redis", "postgres"):
        assert COMPOSE["services"][name]["image"] == container(name)["image"]
    stages = re.findall(r"^FROM (\S+)", (FOLDER / "Containerfile").read_text(), re.MULTILINE)
    assert stages == ["debian:12-slim", "debian:12-slim", "server"]
    assert COMPOSE["x-node"]["build"]["dockerfile"] == str((FOLDER / "Containerfile").relative_to(ROOT))


def test_guide_develops_in_the_first_stage_of_the_image():
    guide = (ROOT / "docs/guide/containers.md").read_text()
    target, image, file = re.search(r"docker build --target (\S+) -t (\S+) -f (\S+) \.", guide).groups()
    stages = re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / file).read_text(), re.MULTILINE)
    assert stages == [target, "server"] and f" {image} monkey run -p 0.0.0.0:2001 " in guide
    assert json.loads(re.search(r"^    (\{.*\})$", guide, re.MULTILINE)[1]) == {"image": image, "forwardPorts": [2001]}


def test_image_installs_the_libraries_the_server_loads():
    """This test needs Debian 12, the base system of the image."""
    release = ROOT / "build/dev/monkey"
    if "bookworm" not in open("/etc/os-release").read() or not shutil.which("dpkg") or not release.exists():
        pytest.skip("this is not Debian 12")
    text = (FOLDER / "Containerfile").read_text()
    built, run, more = (packages.split() for packages in re.findall(r"install-recommends \\?\s*([^\\&]+)", text))
    run += more
    objects = [services.OBJECTS / f"monkey-{name}.so" for name in ("metrics", "duda", "duda-redis", "duda-postgres", "duda-store", "duda-sql")]
    needed = set()
    for path in objects:
        text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        direct = set(re.findall(r"\(NEEDED\).*\[([^]]+)\]", text))
        text = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        needed |= {path for name, path in re.findall(r"(\S+) => (/(?:usr/)?lib/\S+)", text) if name in direct}
    wanted = {package for path in needed for package in owners(path)} - {"libc6", "libasan8", "libubsan1", "libgcc-s1"}
    assert {"libpq5"} <= wanted <= set(run), wanted
    assert {"libpq-dev", "libssl-dev"} <= set(built)


def owners(path):
    """Returns the packages that contain the given file."""
    done = subprocess.run(["dpkg", "-S", re.sub("^/lib/", "/usr/lib/", path), path], capture_output=True, text=True, check=False)
    return {line.split(":")[0] for line in done.stdout.splitlines()}


# ---- A running service ----

needs_servers = pytest.mark.skipif(
    not services.has("redis") or not services.has("postgres") or not redis_server.PROGRAM or not postgres_server.is_usable(),
    reason="no libpq, Redis or PostgreSQL here")


@pytest.fixture(scope="module")
def postgres():
    server = postgres_server.Postgres()
    server.sql("CREATE ROLE notes LOGIN PASSWORD 'pg secret'")
    server.sql("CREATE DATABASE notes OWNER notes")
    path = f"{server.folder}/data/pg_hba.conf"
    text = open(path, encoding="utf-8").read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"local notes notes scram-sha-256\n{text}")
    server.sql("SELECT pg_reload_conf()")
    yield server
    server.stop()


@pytest.fixture
def redis():
    server = redis_server.Redis("--requirepass", "a redis secret")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    return services.build(tmp_path_factory.mktemp("notes"), "notes", FOLDER / "notes.c", packages=["sql", "store"])


@pytest.fixture
def start(monkey, tmp_path, service, postgres, redis):
    def run(**passwords):
        folder = tmp_path / f"node{len(list(tmp_path.glob('node*')))}"
        shutil.copytree(FOLDER / "migrations", folder / "migrations")
        (folder / "secrets").mkdir()
        for name, password in {"redis": "a redis secret", "postgres": "pg secret", **passwords}.items():
            (folder / "secrets" / f"{name}-password").write_text(password + "\n")
        (folder / "monkey.conf").write_text(CONFIGURATION.replace("/tmp/leaving", f"{folder}/leaving"))
        (folder / "files").mkdir()
        return monkey(args=["-c", folder / "monkey.conf"], environment={
            "PORT": "127.0.0.1:0", "ADMIN_PORT": "127.0.0.2:0", "SERVICE": str(service), "REDIS": f"unix:{redis.socket}",
            "POSTGRES": f"host={postgres.folder} user=notes dbname=notes", "SECRETS": str(folder / "secrets"),
            "FILES": str(folder / "files"), "WORKERS": "1"}), folder

    return run


@needs_servers
def test_notes_are_shared_between_two_nodes(start, redis):
    (first, folder), (second, _) = start(), start()
    with second.connect() as c:
        c.send(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        c.read_until(b"\n\n")
        wait_until(lambda: b":2\r\n" in redis_ask(redis), "both nodes subscribe")
        assert first.get("/notes", "POST", body="a note, ä".encode()).status == 201
        c.read_until("data: a note, ä\n".encode())
    assert [note["note"] for note in json.loads(second.get("/notes").text)] == ["a note, ä"]
    assert first.get("/metrics").status == 404, "the public port has no metrics"
    numbers = prometheus.parse(first.get("/metrics", listener=1).text)
    known = {name for name, _ in numbers.samples}
    series = [re.match(r"\w+", rule["seriesQuery"])[0] for rule in ADAPTER["rules"]["custom"]]
    assert set(series) <= known
    named_by_adapter = {series[0].replace("_total", "_per_second"), series[1]}
    wanted = {metric["pods"]["metric"]["name"] for metric in named("HorizontalPodAutoscaler")["spec"]["metrics"] if metric["type"] == "Pods"}
    assert wanted == named_by_adapter
    assert [first.get(path, listener=1).status for path in ("/healthz", "/readyz")] == [200, 200]
    (folder / "leaving").touch()
    assert [first.get(path, listener=1).status for path in ("/healthz", "/readyz")] == [200, 503]
    assert first.get("/notes").status == 200, "the node serves while load balancers still send requests"


def redis_ask(redis):
    return subprocess.run(["redis-cli", "-s", redis.socket, "-a", "a redis secret", "--no-auth-warning", "PUBSUB", "NUMSUB", "!duda:topics:notes"],
                          capture_output=True, check=True, timeout=SECONDS).stdout.replace(b"\n", b":").replace(b":2:", b":2\r\n")


@needs_servers
def test_redis_probe_succeeds_only_with_the_right_password(redis, tmp_path):
    """The probes log in to Redis. A Redis that rejects the password or is still loading its data is not ready. Without -e,
    redis-cli would exit with 0 in both cases."""
    probe = container("redis")["readinessProbe"]["exec"]["command"][-1]
    kind, compose = COMPOSE["services"]["redis"]["healthcheck"]["test"]
    assert kind == "CMD-SHELL" and compose.replace("$$", "$") == probe
    for password, is_ready in (("a redis secret", True), ("wrong", False)):
        (tmp_path / "redis-password").write_text(password + "\n")
        here = probe.replace("/run/secrets", str(tmp_path)).replace("redis-cli", f"redis-cli -s {redis.socket}")
        done = subprocess.run(["sh", "-c", here], capture_output=True, timeout=SECONDS, check=False)
        assert (done.returncode == 0) == is_ready, done


@needs_servers
def test_wrong_postgres_password_is_answered_with_503(start):
    node, _ = start(postgres="wrong")
    node.allow("POSTGRES", "password")
    assert node.get("/notes").status == 503
    assert "password authentication failed" in node.err.text
