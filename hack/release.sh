#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commits a release of all modules and tags it: hack/release.sh v0.1.0. The work is done in a second working tree, so an error before the
# last step changes nothing here. It pushes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1:-}
refuse() { echo "release: $*" >&2; exit 1; }
[[ "$version" =~ ^v[01]\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || refuse "\"$version\" is not a version such as v0.1.0 below v2.0.0"
[[ -z "$(git status --porcelain)" ]] || refuse "the tree has changes that are not committed"
grep -qF "## [${version#v}]" CHANGELOG.md || refuse "CHANGELOG.md has no section \"## [${version#v}]\""
modules=$(go run -C hack ./cmd/versions -released)
for module in $modules; do
	[[ -z "$(git tag --list "$module/$version")" ]] || refuse "the tag $module/$version exists"
done
# A version is requested by its order: v0.2.0 after v0.10.0 would reach nobody. A "~" sorts before the end, as a pre-release does.
newest=$( (git tag --list 'topology/v*' | cut -d/ -f2; echo "$version") | sed 's/-/~/' | sort --version-sort | tail -n 1 | sed 's/~/-/')
[[ "$newest" == "$version" ]] || refuse "there is $newest already"

scratch=$(mktemp -d)
trap 'git worktree remove --force "$scratch/tree"; rm -rf "$scratch"' EXIT
git worktree add --quiet --detach "$scratch/tree"
(
	cd "$scratch/tree"
	sed -i "/^release:/,/^  libraries:/s/^  version: .*/  version: $version/" hack/versions.yaml
	git ls-files '*.md' ':!CHANGELOG.md' ':!*/testdata/*' | xargs -d '\n' \
		sed -i -E "s#(github.com/solonode/sno/[A-Za-z0-9_./-]+@)v[0-9][A-Za-z0-9_.+-]*[A-Za-z0-9]#\1$version#g"
	go run -C hack ./cmd/versions
	make --no-print-directory verify
	git commit --quiet --all --message="all: release $version"
)
commit=$(git -C "$scratch/tree" rev-parse HEAD)
go run -C hack ./cmd/release -commit "$commit"
git merge --quiet --ff-only "$commit"
tags=()
for module in $modules; do
	git tag --annotate --message="$module $version" "$module/$version" "$commit"
	tags+=("$module/$version")
done
printf 'Released %s as commit %s with %d tags. Build the downloads of this commit:\n  make dist DIST_FLAGS=-check\nPush the tags together:\n  git push --atomic origin HEAD %s\n' \
	"$version" "$commit" "${#tags[@]}" "${tags[*]}"
