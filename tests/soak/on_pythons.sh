#!/usr/bin/env bash
# Runs the suite of the last commit on other Pythons: tests/soak/on_pythons.sh 3.12 3.13 3.14
#
# Takes an interpreter that this machine has, on PATH or managed by uv. For 3.13 and 3.14, root may
# instead have Debian's, in a directory that debootstrap fills (MIRROR names another mirror than its
# own); there the suite runs as a user without privileges. Says in the end what it skipped, and why.
set -euo pipefail
cd "$(dirname "$0")/../.."

declare -A suites=([3.13]=trixie [3.14]=forky)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=()
status=0

interpreter() { # interpreter VERSION: its path, if it can run Moonhook
    local found
    found=$(.venv/bin/uv python find --system --no-python-downloads "$1" 2>/dev/null) || return 1
    "$found" -c 'import ctypes, ensurepip, sqlite3, ssl' 2>/dev/null && echo "$found"
}

in_clone() { # in_clone VERSION INTERPRETER
    git clone -q . "$work/$1"
    env -u MOONHOOK_DATA_DIR make -C "$work/$1" test PYTHON="$2"
}

in_debian() { # in_debian SUITE
    local root=$work/$1
    debootstrap --variant=minbase --include=ca-certificates,libseccomp2,make,procps,python3-venv \
        "$1" "$root" ${MIRROR:+"$MIRROR"} >"$work/$1.log" || { tail "$work/$1.log"; return 1; }
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    chroot "$root" useradd --create-home moonhook
    git clone -q . "$root/home/moonhook/clone"
    chroot "$root" chown -R moonhook: /home/moonhook
    # The mounts end with their namespace.
    unshare --mount bash -euc '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        exec env -u MOONHOOK_DATA_DIR -u TMPDIR HOME=/home/moonhook LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            chroot --userspec=moonhook:moonhook "$1" make -C /home/moonhook/clone test
    ' in_debian "$root"
}

run() { # run VERSION WHERE COMMAND…
    local version=$1 where=$2; shift 2
    printf '\n=== Python %s (%s)\n' "$version" "$where"
    if "$@"; then results+=("passed   $version ($where)"); else results+=("FAILED   $version ($where)"); status=1; fi
}

for version in "$@"; do
    suite=${suites[$version]:-}
    if python=$(interpreter "$version"); then
        run "$version" "$python" in_clone "$version" "$python"
    elif [ -z "$suite" ]; then
        results+=("skipped  $version: no interpreter here, and none in Debian")
    elif [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
        results+=("skipped  $version: no interpreter here; Debian's needs root and debootstrap")
    else
        run "$version" "Debian $suite" in_debian "$suite"
    fi
done

printf '\n=== The suite on other Pythons\n'
printf '%s\n' "${results[@]}"
exit "$status"
