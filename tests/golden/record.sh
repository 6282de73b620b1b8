#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Usage: record.sh BUILD [FIXTURES].  Records the golden vectors again, with the programs of a
# build folder: cmake --build BUILD --target verbena verbena_preload golden_record
#
# Besides the plain recording there is one for each variable of libmlx5 that might change
# what it writes.  Only doorbell registers may differ then; anything else ends this script.
set -eu

build=$(realpath "$1")
fixtures=$(realpath "${2:-"$(dirname "$0")/../../fixtures"}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A fabric of its own each time: numbers and keys then begin where they always do.
record() {
	local name=$1
	shift
	env -u MLX5_SHUT_UP_BF -u MLX5_SCATTER_TO_CQE -u MLX5_POST_SEND_PREFER_BF "$@" \
		"$build/bin/verbena" run --quiet --nic connectx-6dx --fabric "golden-$$-$name" -- \
		"$build/tests/golden/golden_record" "$scratch/$name"
	# These are for compare.py.
	rm -rf "$scratch/$name"/{commands,wqe_ud,wqe_xrc,wqe_dc,wqe_raw,wqe_raw_l2}
}

record plain
record shut_up_bf MLX5_SHUT_UP_BF=1
record prefer_no_bf MLX5_POST_SEND_PREFER_BF=0
record no_scatter MLX5_SCATTER_TO_CQE=0
for folder in "$scratch"/plain/*; do
	kind=$(basename "$folder")
	[ "$kind" != uar ] || continue
	for variant in shut_up_bf prefer_no_bf no_scatter; do
		diff -r "$scratch/plain/$kind" "$scratch/$variant/$kind"
	done
done
diff -r "$scratch/plain/uar" "$scratch/no_scatter/uar"
for variant in shut_up_bf prefer_no_bf; do
	for table in send_old send_ex; do
		cp "$scratch/$variant/uar/$table.txt" "$scratch/plain/uar/${table}_$variant.txt"
	done
done

for folder in "$scratch"/plain/*; do
	kind=$(basename "$folder")
	rm -rf "${fixtures:?}/$kind"
	cp -r "$folder" "$fixtures/"
done
find "$fixtures" -name '*.hex' | wc -l | sed 's/$/ work requests recorded/'
