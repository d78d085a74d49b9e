"""A cluster that --workers starts is closed to other users of the machine: its files, its ports, its code."""

import os
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import exactrank as er
from exactrank.backends.local_cluster import local_cluster
from exactrank.data.shards import query_range
from exactrank.data.synthetic import CubicPolynomial
from tests.events import HANGS, gone

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
LISTENS = "0A"  #: the state of a socket in /proc/net/tcp
NOBODY = 65534  #: a user without rights
#: What another user wants to have run: it leaves a file where the module lies.
INTRUDER = "from pathlib import Path; Path(__file__).with_suffix('.run').touch()\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for temporary files in which another user has prepared Dask's, before the cluster starts."""
    place = tmp_path_factory.mktemp("temporary")
    scratch = place / "dask-scratch-space"
    scratch.mkdir()
    for name in ("click", "colorsys", "preload", "signal", "sitecustomize"):
        (scratch / f"{name}.py").write_text(INTRUDER)
    for path in (scratch, *scratch.iterdir()):
        path.chmod(0o777)
        if os.getuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    return place


@pytest.fixture(scope="module")
def cluster(place: Path) -> "Iterator[Any]":
    """A client of the real thing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(place))
        patch.setenv("TMPDIR", str(place))
        with local_cluster(2) as client:
            yield client


def processes(client: Any) -> set[int]:
    """This one, in which the scheduler and the nannies are, and the workers."""
    return {os.getpid(), *client.run(os.getpid).values()}


def listening(pid: int) -> set[str]:
    """The addresses at which a process listens, as Linux writes them: in hexadecimal."""
    sockets = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(os.readlink(entry))
        except FileNotFoundError:  # it has just been closed
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and f"socket:[{fields[9]}]" in sockets:
                found.add(fields[1])
    return found


def test_everything_listens_on_the_loopback_interface_and_nothing_speaks_http(cluster: Any) -> None:
    addresses = {address for pid in processes(cluster) for address in listening(pid)}
    assert {address.partition(":")[0] for address in addresses} == {"0100007F"}
    assert len(addresses) == 5  # of the scheduler, two nannies and two workers
    for address in addresses:
        with socket.create_connection(("127.0.0.1", int(address.partition(":")[2], 16)), HANGS) as plain:
            plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert b"HTTP" not in received(plain)


def received(connection: socket.socket) -> bytes:
    """Return what arrives until the other side closes."""
    content = b""
    try:
        while some := connection.recv(4096):
            content += some
    except OSError:  # it was cut off
        pass
    return content


def ports(client: Any) -> list[int]:
    workers = client.scheduler_info(n_workers=-1)["workers"]
    addresses = [client.scheduler.address, *workers, *(worker["nanny"] for worker in workers.values())]
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
    return [int(address.rpartition(":")[2]) for address in addresses]


def test_a_stranger_is_refused_with_and_without_a_certificate_of_its_own(cluster: Any, tmp_path: Path) -> None:
    other = distributed.Security.temporary()
    (tmp_path / "cert.pem").write_text(other.tls_client_cert + other.tls_client_key)
    for port in ports(cluster):
        for certificate in (None, tmp_path / "cert.pem"):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if certificate is not None:
                context.load_cert_chain(certificate)
            with (
                socket.create_connection(("127.0.0.1", port), HANGS) as plain,
                pytest.raises(ssl.SSLError, match=r"(?i)alert"),
                context.wrap_socket(plain) as secret,
            ):
                while secret.recv(4096):
                    pass
    for protocol, security in (("tcp", None), ("tls", other)):
        with pytest.raises(OSError):  # noqa: PT011  of several types
            distributed.Client(f"{protocol}://127.0.0.1:{ports(cluster)[0]}", timeout=1, security=security, set_as_default=False)


def test_files_lie_in_a_folder_of_this_user_alone(cluster: Any, place: Path) -> None:
    folders = {
        Path(worker["local_directory"]).relative_to(place).parts[0] for worker in cluster.scheduler_info(n_workers=-1)["workers"].values()
    }
    (folder,) = folders
    assert folder.startswith("exactrank-")
    assert stat.S_IMODE((place / folder).stat().st_mode) == 0o700
    paths = cluster.run(lambda: sys.path)
    for path in (sys.path, *paths.values()):
        assert not any(each.startswith(str(place / "dask-scratch-space")) for each in path)


def test_the_code_of_another_user_is_not_run_and_its_folder_not_written_to(cluster: Any, place: Path) -> None:
    cluster.run(lambda: __import__("colorsys"))
    assert {path.suffix for path in (place / "dask-scratch-space").iterdir()} == {".py"}


def test_the_key_is_in_no_list_of_processes(cluster: Any) -> None:
    key = "".join(cluster.security.tls_client_key.split("\n")[1:3])
    for pid in processes(cluster):
        shown = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        assert b"PRIVATE KEY" not in shown
        assert key[:40].encode() not in shown


#: A program that starts a cluster where the current folder is another user's, and says where its files were.
ELSEWHERE = """
from exactrank.backends.local_cluster import local_cluster
if __name__ == "__main__":
    with local_cluster(1) as client:
        import os
        (worker,) = client.scheduler_info(n_workers=-1)["workers"].values()
        print(worker["local_directory"], *client.run(os.getpid).values(), flush=True)
    print(os.environ.get("PYTHONSAFEPATH"))
"""


def test_nothing_is_imported_from_the_current_folder_and_nothing_is_left(tmp_path: Path) -> None:
    here, program, temporary = tmp_path / "here", tmp_path / "program.py", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    program.write_text(ELSEWHERE)
    for name in ("multiprocessing", "colorsys", "distributed"):
        (here / f"{name}.py").write_text(INTRUDER)
    environment = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(Path(er.__file__).parents[1])}
    environment.pop("PYTHONSAFEPATH", None)
    shown = subprocess.run([sys.executable, program], cwd=here, env=environment, check=True, capture_output=True, text=True).stdout
    folder, pid, after = shown.split()
    assert Path(folder).is_relative_to(temporary)
    assert gone(int(pid))
    assert list(temporary.iterdir()) == []
    assert {path.suffix for path in here.iterdir()} == {".py"}
    assert after == "None"


def test_models_are_those_of_one_process(cluster: Any, tmp_path: Path) -> None:
    data = CubicPolynomial(features=4, documents=10, noise=0.5, seed=1).data(200)
    paths = [tmp_path / f"{number}.xr" for number in range(2)]
    for number, path in enumerate(paths):
        er.write(query_range(data, 100 * number, 100 * number + 100), path)
    engine = er.DaskBackend(cluster, silence=HANGS)
    for make in (partial(er.LambdaMART, trees=2, threads=1), partial(er.DirectRank, bags=0, max_iter=1, threads=1)):
        ours, theirs = (make(backend=each).fit(er.read_shards(paths)).model_ for each in (engine, None))
        assert ours.predict(data).tobytes() == theirs.predict(data).tobytes()


def test_a_cluster_with_tls_is_reached_by_the_variables_of_dask(tmp_path: Path) -> None:
    security = distributed.Security.temporary()
    (tmp_path / "cert.pem").write_text(security.tls_client_cert)
    (tmp_path / "key.pem").write_text(security.tls_client_key)
    pair = {"CERT": "cert.pem", "KEY": "key.pem"}
    variables = {"CA_FILE": "cert.pem"} | {f"CLIENT__{name}": path for name, path in pair.items()}
    environment = os.environ | {f"DASK_DISTRIBUTED__COMM__TLS__{name}": path for name, path in variables.items()}
    environment["PYTHONPATH"] = str(Path(er.__file__).parents[1])
    er.write(CubicPolynomial(features=2, documents=5, noise=0.5, seed=1).data(50), tmp_path / "data.xr")
    local = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**local, protocol="tls://", security=security, local_directory=str(tmp_path)) as cluster:
        command = ("train", "ridge", "data.xr", "--out", "model.json", "--dask", cluster.scheduler_address)
        ended = subprocess.run(
            [sys.executable, "-c", "from exactrank.cli import main; main()", *command],
            cwd=tmp_path,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "model.json").exists()


def full(path: str) -> None:
    """Write to a disk that is full."""
    with open(path, "wb", buffering=0) as file:
        file.write(b"x")


def test_a_full_disk_of_a_worker_is_told_as_such(cluster: Any, place: Path) -> None:
    engine = er.DaskBackend(cluster, silence=HANGS)
    message = (
        rf"worker tls://.* \(process \d+\): the disk is full \(No space left on device\) at its folder .* {place}, .*; free some of it"
    )
    with pytest.raises(er.errors.EngineError, match=message):
        engine.map(full, ["/dev/full"])
