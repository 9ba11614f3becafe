# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Turns a completion that is not OK into its typed error: status, reason, place and remedy."""

from __future__ import annotations

from hotline.codes import Operation, Reason, Status
from hotline.device.base import Completion
from hotline.errors import Aborted, AxiError, BadConfig, BadIndex, ColdOverflow, JobError

_BAD_CONFIG: dict[Reason, tuple[str, str]] = {
    Reason.OPERATION: (
        "the operation is unknown or not of this kernel",
        "submit it to the kernel whose capabilities list it",
    ),
    Reason.RECORD_POINTER: (
        "the completion record's address is null or not a multiple of 64",
        "give the driver's own record buffer",
    ),
    Reason.POINTER: (
        "an address that the job uses is null or not a multiple of 64",
        "pass arrays from Device.allocate, from their start or a multiple of 64 bytes in",
    ),
    Reason.LOOKUPS: (
        "too many lookups for one job, or not samples * lookups_per_sample",
        "split the batch (capabilities.job_lookups_max), or correct samples and lookups_per_sample",
    ),
    Reason.SAMPLES: (
        "too many samples for one job",
        "split the batch (capabilities.job_samples_max)",
    ),
    Reason.BAGS: ("too many bags per sample", "use at most capabilities.bags_max bags"),
    Reason.LOOKUPS_PER_SAMPLE: (
        "more lookups per sample than the kernel takes",
        "use at most capabilities.lookups_max, or a larger hardware configuration",
    ),
    Reason.ROWS: (
        "total_rows is 0 or above 2**32 - 2, or pinned_rows exceeds it",
        "take both from the group of tables",
    ),
    Reason.COLD_RANGE: (
        "cold_rows_max is 0 or above the tracker's depth, or cold_base is below hot_rows, or "
        "cold_base + cold_rows_max reaches 2**31",
        "use cold_rows_max <= capabilities.cold_rows_max and cold_base >= pinned_rows + the EAL's "
        "entries",
    ),
    Reason.RECORD_BYTES: (
        "record_bytes is not a multiple of 64 from 64 to 4096",
        "pad the records to a multiple of 64 bytes",
    ),
    Reason.SEGMENTS: (
        "the segments do not cover the rows, or segments or segment_shift are out of range",
        "use 1 to 64 segments of 1 << segment_shift rows each, segment_shift at most 31",
    ),
}


def reason_in_words(completion: Completion) -> str:
    """Says what a completion's status, reason and error fields mean, with the place."""
    status, reason = completion.status, completion.reason
    if status is Status.OK:
        return "no error"
    if status is Status.BAD_CONFIG:
        return _BAD_CONFIG.get(reason, ("the arguments are out of range", ""))[0]
    if status is Status.BAD_INDEX:
        if reason is Reason.OFFSET:
            return (
                f"offsets[{completion.error_lookup}] = {completion.error_value} (sample "
                f"{completion.error_sample}) is out of contract"
            )
        if reason is Reason.SAMPLE_TOO_LONG:
            return (
                f"sample {completion.error_sample}, whose first lookup is number "
                f"{completion.error_lookup}, has {completion.error_value} lookups, more than the "
                "kernel takes"
            )
        place = f"lookup {completion.error_lookup}"
        if completion.operation is Operation.FRAGMENT:
            place += f" (sample {completion.error_sample})"
        return f"row id {completion.error_value} at {place} is not below total_rows"
    if status is Status.COLD_OVERFLOW:
        return (
            f"sample {completion.samples} needs more distinct cold rows than cold_rows_max leaves "
            f"({completion.cold_rows} taken by the samples before it)"
        )
    if status is Status.AXI_ERROR:
        kind = {Reason.READ: "a read", Reason.WRITE: "a write"}.get(reason, "an access")
        return f"the memory refused {kind} at address {completion.error_value:#x}"
    if status is Status.ABORTED:
        return "the host set the abort bit"
    return f"status {int(status)} is unknown"


def remedy(completion: Completion) -> str:
    """Says what the caller can do about a completion that is not OK; empty for OK."""
    status, reason = completion.status, completion.reason
    if status is Status.BAD_CONFIG:
        return _BAD_CONFIG.get(reason, ("", "check the job's arguments"))[1]
    if status is Status.BAD_INDEX:
        applied = ""
        if completion.operation in (
            Operation.LEARN,
            Operation.LOAD,
            Operation.EVICT,
            Operation.SCATTER,
        ):
            applied = f"; the {completion.lookups} before it took effect"
        if reason is Reason.OFFSET:
            return (
                "offsets start at 0, never decrease, stay at most `lookups` and end there; correct "
                "the batch"
            )
        if reason is Reason.SAMPLE_TOO_LONG:
            return "shorten the sample, or use a hardware configuration with a larger lookups_max"
        return f"correct the ids or total_rows{applied}"
    if status is Status.COLD_OVERFLOW:
        if completion.samples:
            return (
                f"use the results of samples 0 ... {completion.samples - 1} and submit the rest "
                f"from sample {completion.samples} on"
            )
        return "this sample alone does not fit: raise cold_rows_max or enlarge the hot set"
    if status is Status.AXI_ERROR:
        return "check that every buffer of the job is still allocated, then submit it again"
    if status is Status.ABORTED:
        if completion.operation in (Operation.LEARN, Operation.LOAD, Operation.EVICT):
            return f"the first {completion.lookups} took effect; submit the rest if wanted"
        return "its outputs are void; submit it again if wanted"
    return ""


_ERRORS: dict[Status, type[JobError]] = {
    Status.BAD_CONFIG: BadConfig,
    Status.BAD_INDEX: BadIndex,
    Status.COLD_OVERFLOW: ColdOverflow,
    Status.AXI_ERROR: AxiError,
    Status.ABORTED: Aborted,
}


def error_of(completion: Completion) -> JobError | None:
    """Returns the typed error of a completion, None where its status is OK."""
    if completion.status is Status.OK:
        return None
    name = getattr(completion.reason, "name", str(completion.reason))
    operation = getattr(completion.operation, "name", f"operation {completion.operation}")
    status = completion.status.name + (f" ({name})" if completion.reason else "")
    return _ERRORS[completion.status](
        f"{operation} job, tag {completion.tag}: {status}: "
        f"{reason_in_words(completion)}. Remedy: {remedy(completion)}.",
        completion=completion,
    )


def raise_for(completion: Completion) -> None:
    """Raises the typed error of a completion; returns where its status is OK."""
    error = error_of(completion)
    if error is not None:
        raise error
