"""`make audit`: known vulnerabilities of the locked dependencies, from an index that answers.

Exit status: 0 none known, 1 some found, 2 no index could be reached and nothing was checked.
"""

import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

LOCK_FILES = ("runtime.txt", "dev.txt")
# pip-audit's name of the service -> a small answer that shows that it is there.
SERVICES = {
    "pypi": "https://pypi.org/pypi/pip/json",
    "osv": "https://api.osv.dev/v1/vulns/PYSEC-2018-28",
}
ANSWER_SECONDS = 10


def reachable_service() -> str | None:
    for service, address in SERVICES.items():
        try:
            with urlopen(address, timeout=ANSWER_SECONDS):
                return service
        except OSError as error:
            print(f"audit: {address}: {error}", file=sys.stderr)
    return None


def main() -> int:
    service = reachable_service()
    if service is None:
        print("audit: no vulnerability index can be reached: NOTHING WAS CHECKED", file=sys.stderr)
        return 2
    statuses = []
    for name in LOCK_FILES:
        lock_file = Path(__file__).with_name(name)
        print(f"audit: {name}, known to {service}", flush=True)
        command = [sys.executable, "-m", "pip_audit", "--vulnerability-service", service]
        command += ["--require-hashes", "--disable-pip", "--requirement", str(lock_file)]
        statuses.append(subprocess.run(command, check=False).returncode)
    return 1 if any(statuses) else 0


if __name__ == "__main__":
    sys.exit(main())
