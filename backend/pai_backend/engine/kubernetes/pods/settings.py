"""What an administrator chooses about the pods of tasks, as the builders know it: values of ``model``, which the
configuration is checked with before anything of this engine is imported.
"""

from __future__ import annotations

from pai_backend.model.pod_settings import BASELINE_CAPABILITIES as BASELINE_CAPABILITIES
from pai_backend.model.pod_settings import Binding as Binding
from pai_backend.model.pod_settings import FrontDoor as FrontDoor
from pai_backend.model.pod_settings import GpuSettings as GpuSettings
from pai_backend.model.pod_settings import InfinibandSettings as InfinibandSettings
from pai_backend.model.pod_settings import MountPath as MountPath
from pai_backend.model.pod_settings import Names as Names
from pai_backend.model.pod_settings import Network as Network
from pai_backend.model.pod_settings import NfsSource as NfsSource
from pai_backend.model.pod_settings import PodSettings as PodSettings
from pai_backend.model.pod_settings import SecuritySettings as SecuritySettings
from pai_backend.model.pod_settings import VolumeSettings as VolumeSettings
