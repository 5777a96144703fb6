"""Bytes from elsewhere: downloads that resume, the Python index, strict unpacking.

Nothing here imports an HTTP library before a byte is really asked for: a run that finds
everything in the store must not pay for it.
"""

from llamawright.transfer.download import download
from llamawright.transfer.index import download_index_file
from llamawright.transfer.members import UnpackLimits
from llamawright.transfer.request import DownloadRequest, HttpSettings
from llamawright.transfer.retry import Clock
from llamawright.transfer.unpack import extract_member, unpack_archive

__all__ = [
    "Clock",
    "DownloadRequest",
    "HttpSettings",
    "UnpackLimits",
    "download",
    "download_index_file",
    "extract_member",
    "unpack_archive",
]
