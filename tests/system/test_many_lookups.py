# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Ten million lookups on the cpu backend and on the oracle, with the traffic of the benchmarks."""

from __future__ import annotations

import itertools
from dataclasses import asdict

import numpy as np
import pytest

import hotline
from hotline.bench.traffic import traffic
from hotline.codes import Policy, Status
from hotline.config import CONFIGS, KernelConfig
from hotline.device.base import ENTRY, Dump, Fragment, Learn
from tests.system.conftest import SEED

OUTPUTS = ("indices", "popular", "nonpopular", "bitmap", "cold_rows")
SMALL = KernelConfig("small", 64, 512, 4, 1, 512, 256, 1, 16, 64, 64, 1)
"""Other ways than 16, and a tracker that overflows."""


@pytest.mark.parametrize(
    ("name", "config", "batches", "samples"),
    [
        ("criteo", CONFIGS["alveo"], 40, 4096),
        ("jagged", CONFIGS["zynq"], 30, 1024),
        ("unpinned", SMALL, 60, 128),
        ("cold", CONFIGS["kv260"], 8, 600),
    ],
)
def test_cpu_equals_the_oracle(name: str, config: KernelConfig, batches: int, samples: int) -> None:
    """A few LEARN jobs of either policy, FRAGMENT of the rest, and the EAL at the end."""
    made = traffic(name, config.eal_sets, config.eal_ways, samples=samples, seed=SEED)
    lookups = 0
    with (
        hotline.open("cpu", config, threads=2) as ours,  # type: ignore[arg-type]
        hotline.open("reference", config) as oracle,  # type: ignore[arg-type]
    ):
        for number, batch in enumerate(itertools.islice(made.batches, batches)):
            results, completions = [], []
            for device in (ours, oracle):
                ids = device.allocate(batch.ids.size, np.uint32)
                ids[:] = batch.ids
                rows = (made.total_rows, made.pinned_rows)
                if number < 6:
                    policy = Policy.SRRIP if number < 2 else Policy.FREQUENCY
                    completions.append(device.run(Learn(ids, *rows, policy)))
                    device.free(ids)
                    continue
                sizes = (ids.size, samples, samples, -(-samples // 32), config.cold_rows_max)
                out = {
                    field: device.allocate(size, np.uint32)
                    for field, size in zip(OUTPUTS, sizes, strict=True)
                }
                offsets = None
                if batch.offsets is not None:
                    offsets = device.allocate(batch.offsets.size, np.uint32)
                    offsets[:] = batch.offsets
                job = Fragment(
                    ids,
                    samples,
                    *rows,
                    cold_base=made.pinned_rows + config.eal_entries,
                    cold_rows_max=min(config.cold_rows_max, ids.size),
                    lookups_per_sample=batch.lookups_per_sample or 0,
                    offsets=offsets,
                    bags=0 if offsets is None else batch.bags,
                    **out,  # type: ignore[arg-type]
                )
                done = device.submit(job).wait(check=False)
                counts = {
                    "indices": done.lookups,
                    "popular": done.popular,
                    "nonpopular": done.samples - done.popular,
                    "bitmap": done.samples // 32,  # the last word may have undefined bits
                    "cold_rows": done.cold_rows,
                }
                completions.append(done)
                results.append({field: out[field][:n].copy() for field, n in counts.items()})
                for array in (ids, offsets, *out.values()):
                    if array is not None:
                        device.free(array)
            assert asdict(completions[0]) == asdict(completions[1])
            if results:
                assert completions[0].status in (Status.OK, Status.COLD_OVERFLOW)
                for field in OUTPUTS:
                    np.testing.assert_array_equal(results[0][field], results[1][field])
            lookups += completions[0].lookups
        contents = []
        for device in (ours, oracle):
            entries = device.allocate(config.eal_entries, ENTRY)
            device.run(Dump(entries, made.pinned_rows))
            contents.append(entries.copy())
        np.testing.assert_array_equal(*contents)
    assert lookups > batches * samples  # overflows leave some out
