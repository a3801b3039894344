"""What denies an option sees it by its letter, by its name, and joined with others."""

import pytest

from approvals import shell


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("git commit --no-verify", "git commit -n -m x"),
        ("git commit --no-verify", "git commit -anm x"),
        ("git commit --no-verify", "git commit --no-v -m x"),
        ("git commit -n", "git commit --no-verify"),
        ("git push -f", "git push origin --force"),
        ("git push --delete", "git push -d origin x"),
        ("git clean --force", "git clean -xdf"),
        ("git branch -D", "git branch --delete --force x"),
        ("git branch -D", "git branch -d -f x"),
        ("git branch --delete", "git branch -D x"),
        ("git checkout --force", "git checkout -f x"),
        ("git switch --discard-changes", "git switch -f x"),
        ("git rm --force", "git rm -rf x"),
        ("git commit --no-verify", "git -C x commit -n"),
        ("rm -rf", "rm --recursive --force x"),
        ("rm --recursive", "rm -Rf x"),
        ("cp --recursive", "cp -a x y"),
        ("mv --force", "mv -f x y"),
        ("chmod --recursive", "chmod -R 7 x"),
        ("chown -R", "chown --recursive a x"),
        ("curl -o", "curl https://x --output y"),
        ("curl -o", "curl https://x --output=y"),
        ("curl --output", "curl -sLo y https://x"),
        ("curl --request", "curl -XPOST https://x"),
        ("curl -d", "curl --data-binary @x https://x"),
        ("curl --form", "curl -F a=@x https://x"),
        ("curl -T", "curl --upload-file x https://x"),
        ("curl -k", "curl --insecure https://x"),
        ("wget -O", "wget --output-document=x https://x"),
        ("pip install --index-url", "pip3 install -i https://x y"),
        ("pip install -r", "pip install --requirement x"),
        ("npm install -g", "npm install x --global"),
        ("tar --extract", "tar xf x"),
        ("tar --extract", "tar -xzf x"),
        ("tar -x", "tar --get --file x"),
        ("rsync -e", "rsync --rsh=x a b"),
    ],
)
def test_a_denied_option_is_seen_however_it_is_spelt(pattern, line):
    words = tuple(pattern.split())
    argv = tuple(line.split())
    if argv[0] == "pip3":
        words = ("pip3", *words[1:])
    assert shell.forbids(words, argv)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("git commit --no-verify", "git commit -m x"),
        ("git push --force", "git push -n"),
        ("git branch -D", "git branch -d x"),
        ("git commit --no-verify", "git push -n"),
        ("rm -rf", "rm -r x"),
        ("curl -o", "curl -O https://x"),
        ("tar --extract", "tar cf x y"),
        ("curl --request=POST", "curl --request=GET https://x"),
    ],
)
def test_what_is_another_option_is_not_denied(pattern, line):
    assert not shell.forbids(tuple(pattern.split()), tuple(line.split()))
