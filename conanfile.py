import os
import re

from conan import ConanFile
from conan.errors import ConanException, ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps
from conan.tools.scm import Version

required_conan_version = ">=2.1"


class Holdfast(ConanFile):
    name = "holdfast"
    description = "Work that must not be lost, doubled or left half done"
    license = "Apache-2.0"
    topics = ("resilience", "retry", "jobs", "sagas", "outbox", "plugins")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    test_package_folder = "tests/consumer/conan"

    # Which plugins are in the package, besides the asio runtime and what is kept in memory, which always are.
    options = {
        "with_folly": [True, False],
        "with_sqlite": [True, False],
        "with_postgres": [True, False],
        "with_redis": [True, False],
        "redis_client": ["redis++", "hiredis"],
        "with_dashboard": [False], # there is none yet
    }
    default_options = {
        "with_folly": False,
        "with_sqlite": True,
        "with_postgres": True,
        "with_redis": True,
        "redis_client": "redis++",
        "with_dashboard": False,
    }

    exports_sources = (
        "CMakeLists.txt",
        "LICENSE",
        "cmake/*",
        "abstractions/*",
        "codecs/*",
        "drivers/*",
        "engine/*",
        "host/*",
        "runtimes/*",
        "stores/*",
        "plugins/*",
        "testing/*",
        "tests/conformance/*",
    )

    # Package, range, and the component of it that is linked; `header` ones are seen by users of the package.
    @property
    def _libraries(self):
        yield "boost", "[>=1.81 <2]", "boost::boost", True
        yield "tomlplusplus", "[>=3.3 <4]", "tomlplusplus::tomlplusplus", False
        if self.options.with_folly:
            yield "folly", "[>=2024.8]", "folly::libfolly", True
        if self.options.with_sqlite:
            yield "sqlite3", "[>=3.35 <4]", "sqlite3::sqlite3", False
        if self.options.with_postgres:
            yield "libpqxx", "[>=6.4 <9]", "libpqxx::libpqxx", False
        if self.options.with_redis:
            yield "hiredis", "[>=0.14 <2]", "hiredis::hiredis", False
        if self.options.get_safe("redis_client") == "redis++":
            yield "redis-plus-plus", "[>=1.3.10 <2]", "redis-plus-plus::redis-plus-plus", False

    @property
    def _runtimes(self):
        return ["asio"] + (["folly"] if self.options.with_folly else [])

    @property
    def _stores(self):
        return ["memory"] + [s for s in ("sqlite", "postgres", "redis") if self.options.get_safe(f"with_{s}")]

    @property
    def _events(self):
        return [s for s in self._stores if s != "sqlite"]

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "abstractions/include/holdfast/version.hpp"))
        self.version = ".".join(re.findall(r"#define HOLDFAST_VERSION_\w+ (\d+)", text))

    def export(self): # set_version() reads it wherever the recipe is
        copy(self, "abstractions/include/holdfast/version.hpp", self.recipe_folder, self.export_folder)

    def configure(self):
        if not self.options.with_redis:
            del self.options.redis_client

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        for package, versions, _, seen in self._libraries:
            self.requires(f"{package}/{versions}", transitive_headers=seen, transitive_libs=seen)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"holdfast runs on Linux; this profile says os={self.settings.os}")
        oldest = {"gcc": "13", "clang": "19"}
        compiler, version = str(self.settings.compiler), str(self.settings.compiler.version)
        if compiler not in oldest or Version(version) < oldest[compiler]:
            raise ConanInvalidConfiguration(
                f"holdfast needs gcc >= 13 or clang >= 19; this profile says {compiler} {version}"
                + (", which miscompiles coroutines" if compiler == "gcc" else ""))
        cppstd = str(self.settings.get_safe("compiler.cppstd") or "nothing")
        if cppstd.removeprefix("gnu") not in ("23", "26"):
            raise ConanInvalidConfiguration(
                f"holdfast needs C++23; this profile says compiler.cppstd={cppstd} (-s compiler.cppstd=23)")

    def generate(self):
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate() # hiredis is looked for by pkg-config
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCH"):
            toolchain.cache_variables[f"HOLDFAST_BUILD_{part}"] = False
        toolchain.cache_variables["HOLDFAST_RUNTIMES"] = ";".join(self._runtimes)
        toolchain.cache_variables["HOLDFAST_STORES"] = ";".join(self._stores)
        toolchain.cache_variables["HOLDFAST_EVENTS"] = ";".join(self._events)
        if self.options.with_redis:
            toolchain.cache_variables["HOLDFAST_REDIS_CLIENT"] = str(self.options.redis_client)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    @property
    def _plugin_folder(self):
        return os.path.join(self.package_folder, "lib", "holdfast", "plugins")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        for kind, names in (("runtime", self._runtimes), ("store", self._stores), ("events", self._events)):
            for name in names:
                if not os.path.exists(os.path.join(self._plugin_folder, f"{kind}_{name}.so")):
                    raise ConanException(f"{kind}_{name} was asked for but not built: its library was not found")

    def package_info(self):
        # find_package(holdfast) finds the package's own files, with holdfast_add_plugin() and the command.
        self.cpp_info.set_property("cmake_find_mode", "none")

        # Libraries of the system are none of Conan's.
        linked = {p: c for p, _, c, _ in self._libraries if p in [d.ref.name for d in self.dependencies.values()]}

        def add(name, libs=(), requires=(), needs=()):
            part = self.cpp_info.components[name]
            part.set_property("cmake_target_name", f"holdfast::{name}")
            part.libs = list(libs)
            part.requires = list(requires) + [linked[p] for p in needs if p in linked]
            return part

        everywhere = add("abstractions")
        everywhere.system_libs = ["pthread"]
        everywhere.builddirs = [os.path.join("lib", "cmake", "holdfast")] # of a part: those of the whole are not looked at
        add("json", requires=["abstractions"], needs=["boost"])
        add("engine", ["holdfast_engine"], ["abstractions"])
        add("testing", ["holdfast_testing"], ["engine"])
        add("conformance", ["holdfast_conformance"], ["engine"])
        add("host", ["holdfast_host"], ["engine"], ["tomlplusplus"]).system_libs = ["dl"]
        add("asio_bridge", requires=["abstractions"], needs=["boost"])
        if self.options.with_folly:
            add("folly_bridge", requires=["abstractions"], needs=["folly"])
        # Nothing to link: what the plugins themselves need, and where they are.
        add("plugins", needs=["sqlite3", "libpqxx", "hiredis", "redis-plus-plus"]).libdirs = []

        self.runenv_info.prepend_path("HOLDFAST_PLUGIN_PATH", self._plugin_folder)
        self.runenv_info.prepend_path("PATH", os.path.join(self.package_folder, "bin"))
