#!/bin/sh
# Makes a new password for the frontier's Redis: `sh password.sh [FOLDER [URL]]`.
#
# FOLDER (`secrets`) is made anew, for its owner alone, with two files:
#   users.acl   the users of the Redis (`aclfile`), with the password's hash
#   url         the frontier with its password (PACED_FRONTIER_FILE), at URL (redis://redis)
set -eu
folder=${1:-secrets} url=${2:-redis://redis}
case $url in
*@*) echo "password.sh: the URL has a user; write scheme://host:port" >&2; exit 2 ;;
*://*) ;;
*) echo "password.sh: the URL has no scheme; write scheme://host:port" >&2; exit 2 ;;
esac
# One that is there stays as it is: its password is in use.
mkdir -m 700 "$folder"

# `printf` is part of the shell: the password is in no command's words.
password=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
hash=$(printf %s "$password" | sha256sum | cut -d ' ' -f 1)
# May do what a frontier does, and touch no keys but its own. Nobody else may do anything.
rights='resetkeys ~{paced:* resetchannels &paced:* +@all -@dangerous -@admin +info'
printf 'user default off\nuser paced on #%s %s\n' "$hash" "$rights" >"$folder/users.acl"
printf '%s://paced:%s@%s/0\n' "${url%%://*}" "$password" "${url#*://}" >"$folder/url"
# Containers see these files without the folder, as users of their own.
chmod 0444 "$folder/users.acl" "$folder/url"
echo "password.sh: made $folder/users.acl for the Redis and $folder/url for paced"
