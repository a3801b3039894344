#!/bin/sh
# Runs as root inside the new image: the one user commands run as, and its folders.
set -eu
groupadd --gid 1000 agent
useradd --uid 1000 --gid 1000 --home-dir /home/agent --create-home --shell /bin/bash agent
install -d -o agent -g agent -m 0755 /work
install -d -m 0755 /opt/sandgate
# No set-user-id program is needed by anybody in a sandbox; without them root is one wall further away.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
# `pip install` must just work: it goes to the user's home, and there is no machine here to be kept in order.
rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
echo 'prefix=/home/agent/.local' > /etc/npmrc  # `npm install -g` likewise
# Tests of Python packages: an eighth of the image.
find /usr/lib/python3/dist-packages -depth -type d -name tests -exec rm -rf {} +
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* /etc/machine-id /etc/hostname
