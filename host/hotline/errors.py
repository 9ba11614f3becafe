# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Every exception that Hotline raises on purpose; each message names the place and the remedy."""

from __future__ import annotations


class HotlineError(Exception):
    """Base of all errors of this package."""


class ConfigError(HotlineError, ValueError):
    """A configuration or an argument cannot work; nothing was started."""


class DataError(HotlineError, ValueError):
    """Input data are out of contract (an id outside its table, bad offsets, a malformed file)."""


class IngestError(DataError):
    """A categorical id or an offset of a batch is out of contract.

    Attributes:
        feature: name of the feature.
        sample: number of the sample within the mini-batch.
        value: the offending id or offset.
    """

    def __init__(self, message: str, *, feature: str, sample: int, value: int) -> None:
        super().__init__(message)
        self.feature, self.sample, self.value = feature, sample, value


class FetchError(DataError):
    """A data set could not be fetched; the message says how to get it by hand."""


class ParseError(DataError):
    """Rows of a data file do not fit its schema.

    Attributes:
        issues: (file name, line number counted from 1, what is wrong) of every bad row.
    """

    def __init__(self, message: str, *, issues: tuple[tuple[str, int, str], ...] = ()) -> None:
        super().__init__(message)
        self.issues = issues


class BuildError(HotlineError):
    """The simulated device cannot be built: sources or tools are missing, or a tool failed."""


class DeviceError(HotlineError):
    """Base of everything that a device reports."""


class DeviceMismatch(DeviceError):
    """The device found is not the one that the driver expects (magic, version, configuration)."""


class DeviceTimeout(DeviceError, TimeoutError):
    """A job did not finish in time; the device is marked dead. ``dump`` holds its registers."""

    def __init__(self, message: str, *, dump: dict[str, int] | None = None) -> None:
        super().__init__(message)
        self.dump = dump or {}


class AxiProtocolError(DeviceError):
    """A kernel broke a rule of AXI or an assertion; only simulated devices can see that."""


class DeviceDead(DeviceError):
    """The device was marked dead by an earlier time-out; reset or reopen it."""


class DeviceBufferError(DeviceError, ValueError):
    """An array is not in a buffer of the device, is too small, misaligned, or of a wrong dtype."""


class JobError(DeviceError):
    """A job ended with a status other than OK. ``completion`` is its whole record."""

    def __init__(self, message: str, *, completion: object = None) -> None:
        super().__init__(message)
        self.completion = completion


class BadConfig(JobError, ValueError):
    """The kernel refused the job's arguments; nothing was touched."""


class BadIndex(JobError, IndexError):
    """A row id or an offset is out of contract; the completion names sample, lookup and value."""


class ColdOverflow(JobError):
    """More distinct cold rows than the tracker holds; results up to sample ``completion.samples``
    are valid and the caller goes on from there."""


class AxiError(JobError):
    """The memory answered SLVERR or DECERR; the completion holds an address."""


class Aborted(JobError):
    """The host aborted the job."""


class CompareError(HotlineError):
    """Two runs or two backends that must agree do not."""
