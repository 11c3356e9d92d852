#!/bin/bash
# Makes sure the Debian packages of the named groups are there: tools/deps.sh build [test fmt ...]
#
# Nothing missing: silent, some milliseconds. Missing and root: installs them with apt. Missing and
# not root: names them, prints the one command that installs them, and exits with 2.
set -euo pipefail

packages() {
  case $1 in
    build) echo g++ cmake ninja-build ccache pkg-config libyaml-cpp-dev libcli11-dev libfmt-dev \
      nlohmann-json3-dev libxxhash-dev libprotobuf-dev protobuf-compiler zlib1g-dev libzstd-dev \
      libasio-dev libssl-dev libcpp-httplib-dev ;;
    test) echo libgtest-dev python3 python3-venv etcd-server openssl openssh-server \
      openssh-client ;;
    parquet) echo python3 python3-venv ;;
    fuzz) echo clang-14 libclang-rt-14-dev ;;
    fmt) echo clang-format-14 ;;
    tidy) echo clang-tidy-14 libomp-14-dev python3-venv git ;;
    bench) echo python3 python3-venv libgrpc++-dev libdnnl-dev ocl-icd-opencl-dev \
      opencl-headers ;;
    netns) echo python3 iproute2 ;;
    *) echo "tools/deps.sh: no group '$1'; there are: build test parquet fuzz fmt tidy bench" \
      "netns" >&2
      exit 2 ;;
  esac
}

[ $# -gt 0 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }
wanted=()
for group in "$@"; do
  names=$(packages "$group")
  read -ra names <<<"$names"
  wanted+=("${names[@]}")
done

if ! command -v dpkg-query >/dev/null; then
  echo "note: this is not Debian; flux needs the counterparts of: ${wanted[*]}" >&2
  exit 0
fi
# dpkg-query exits with 1 when it does not know one of the names; what it knows it prints.
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)
missing=()
for name in "${wanted[@]}"; do
  case $'\n'$installed$'\n' in
    *$'\n'"$name installed"$'\n'*) ;;
    *) missing+=("$name") ;;
  esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
  update=""
  compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null || update="sudo apt-get update && "
  {
    echo "flux needs packages that are not installed: ${missing[*]}"
    echo "Install them with this command, then try again:"
    echo "  ${update}sudo apt-get install -y --no-install-recommends ${missing[*]}"
  } >&2
  exit 2
fi

echo "installing ${#missing[@]} Debian packages and what they need: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  apt-get -q -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null 2>&1 | tee -a "$log" |
    awk '/^Get:/ { if (++got % 25 == 0) print "  fetched " got; fflush() }
         /^Setting up/ { if (++set_up % 25 == 0) print "  set up " set_up; fflush() }'
}
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; }; then
  tail -n 25 "$log" >&2
  echo "apt-get failed (its last lines are above); these are still missing: ${missing[*]}" >&2
  exit 1
fi
echo "packages installed"
