"""Options that are the same by a letter and by a name, of the programs that rules deny most. From their manuals.

Only for what denies and asks: a pair that is missing here is missed by such a rule. Must never be used to allow.
"""

from collections.abc import Mapping


def _pairs(text: str) -> dict[str, str]:
    """`r=recursive`: the name means the letter; `df=D`: the letter means those two."""
    return {name: letters for letters, _, name in (each.partition("=") for each in text.split())}


_COPY = _pairs("r=recursive r=R f=force ra=archive ra=a t=target-directory n=no-clobber i=interactive u=update")
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "rm": _pairs("r=recursive r=R f=force i=interactive d=dir"),
    "cp": _COPY,
    "mv": _COPY,
    "chmod": _pairs("R=recursive f=silent f=quiet"),
    "chown": _pairs("R=recursive f=silent f=quiet h=no-dereference"),
    "chgrp": _pairs("R=recursive"),
    "curl": _pairs(
        "o=output O=remote-name X=request d=data d=data-raw d=data-binary d=data-urlencode d=json F=form F=form-string"
        " T=upload-file k=insecure L=location H=header u=user x=proxy K=config s=silent A=user-agent b=cookie"
    ),
    "wget": _pairs(
        "O=output-document P=directory-prefix r=recursive i=input-file e=execute c=continue m=mirror q=quiet"
        " b=background o=output-file"
    ),
    "pip": _pairs("U=upgrade r=requirement e=editable t=target i=index-url c=constraint y=yes f=find-links"),
    "npm": _pairs("g=global f=force D=save-dev E=save-exact P=save-prod O=save-optional w=workspace C=prefix y=yes"),
    "tar": _pairs(
        "x=extract x=get c=create r=append u=update t=list f=file C=directory P=absolute-names I=use-compress-program"
        " F=info-script F=new-volume-script z=gzip j=bzip2 J=xz v=verbose"
    ),
    "rsync": _pairs("e=rsh r=recursive rlptgoD=a rlptgoD=archive z=compress n=dry-run u=update b=backup R=relative"),
    "git": _pairs("f=force q=quiet v=verbose"),
    "git commit": _pairs("n=no-verify a=all m=message F=file S=gpg-sign s=signoff e=edit t=template"),
    "git merge": _pairs("m=message S=gpg-sign s=strategy n=no-stat"),
    "git push": _pairs("d=delete n=dry-run u=set-upstream o=push-option"),
    "git branch": _pairs("d=delete df=D m=move mf=M c=copy cf=C u=set-upstream-to r=remotes a=all"),
    "git tag": _pairs("d=delete a=annotate s=sign u=local-user m=message F=file"),
    "git clean": _pairs("n=dry-run i=interactive e=exclude"),
    "git checkout": _pairs("p=patch t=track d=detach"),
    "git switch": _pairs("c=create cf=C cf=force-create f=discard-changes d=detach t=track"),
    "git rm": _pairs("n=dry-run"),
    "git add": _pairs("A=all p=patch i=interactive e=edit u=update n=dry-run"),
    "git stash": _pairs("u=include-untracked a=all p=patch k=keep-index m=message"),
    "git rebase": _pairs("i=interactive x=exec"),
    "git restore": _pairs("s=source p=patch W=worktree S=staged"),
    "git fetch": _pairs("p=prune a=append t=tags"),
}
_ALSO = {"pip3": "pip", "pnpm": "npm"}


def of(program: str, command: str) -> Mapping[str, str]:
    """Of a program and its sub-command: from a spelling to the letters that it means."""
    program = _ALSO.get(program, program)
    return {**OPTIONS.get(program, {}), **OPTIONS.get(f"{program} {command}", {})}
