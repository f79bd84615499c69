// A RocksDB file system whose files ask before and tell after each I/O.
//
// Everything that can move bytes to or from the device is overridden; what is only forwarded (names, locks,
// attributes) moves none. Two ways past a hook are closed: readahead by the kernel (Prefetch, Hint) and
// asynchronous reads (ReadAsync, io_uring) are not offered, so that RocksDB reads ahead through Read.

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/version.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "files.h"
#include "hook.h"

// What no header promises must be looked at again in every new version of RocksDB.
#if ROCKSDB_MAJOR != 11 || ROCKSDB_MINOR != 8
#error "This shim was checked against RocksDB 11.8 only. Look in the sources of the new version: (1) rocksdb_env_t in \
db/c.cc must still be { Env* rep; bool is_default; }; (2) files.h and file_system.cc must override every function of \
FSSequentialFile, FSRandomAccessFile, FSWritableFile, FSRandomRWFile, FSDirectory and FileSystem that moves bytes, truncates, \
syncs or deletes; (3) src/wal must read what db/log_format.h, db/version_edit.cc and db/write_batch.cc write, and \
src/log/draft.rs write it; (4) memtable.cc: rocksdb_options_t must still be { Options rep; }, and MemTableRep be asked as it \
is in db/memtable.cc and memtable/skiplistrep.cc. Then run the engine's tests and change the numbers here."
#endif

using namespace ROCKSDB_NAMESPACE;

// Layout of rocksdb_env_t in RocksDB's db/c.cc, which no header declares.
struct rocksdb_env_t {
  Env* rep;
  bool is_default;
};

namespace entremet {
namespace {

// `activity` in shim/mod.rs knows them by number.
using Activity = Env::IOActivity;
static_assert(Activity::kFlush == Activity{0} && Activity::kCompaction == Activity{1} &&
                  Activity::kDBOpen == Activity{2} && Activity::kGet == Activity{3} &&
                  Activity::kMultiGet == Activity{4} && Activity::kDBIterator == Activity{5} &&
                  Activity::kVerifyDBChecksum == Activity{6} && Activity::kVerifyFileChecksums == Activity{7} &&
                  Activity::kGetEntity == Activity{8} && Activity::kMultiGetEntity == Activity{9} &&
                  Activity::kGetFileChecksumsFromCurrentManifest == Activity{10},
              "RocksDB numbers its I/O activities anew: change `activity` in shim/mod.rs");

inline bool EndsWith(const std::string& name, const char* end) {
  const std::string tail(end);
  return name.size() >= tail.size() && name.compare(name.size() - tail.size(), tail.size(), tail) == 0;
}

// IOOptions.type is never set by RocksDB, so a file is known by its name.
inline uint8_t KindOf(const std::string& name) {
  if (EndsWith(name, ".sst") || EndsWith(name, ".blob")) {
    return kData;
  }
  return EndsWith(name, ".log") ? kLog : kMetadata;
}

// The number that RocksDB gives each file of records, in its name: 000123.sst.
inline FileId FileOf(const std::string& name) {
  const uint8_t kind = KindOf(name);
  if (kind == kMetadata) {
    return FileId{kind, 0};
  }
  uint64_t number = 0;
  for (size_t i = name.find_last_of('/') + 1; i < name.size() && name[i] >= '0' && name[i] <= '9'; i++) {
    number = number * 10 + static_cast<uint64_t>(name[i] - '0');
  }
  return FileId{kind, number};
}

class HookedFileSystem : public FileSystemWrapper {
 public:
  HookedFileSystem(const std::shared_ptr<FileSystem>& target, SharedHook hook)
      : FileSystemWrapper(target), hook_(std::move(hook)) {}

  static const char* kClassName() { return "EntremetFileSystem"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions& options,
                             std::unique_ptr<FSSequentialFile>* result, IODebugContext* dbg) override {
    IOStatus status = target()->NewSequentialFile(name, options, result, dbg);
    if (status.ok()) {
      *result = std::make_unique<SequentialFile>(std::move(*result), hook_, FileOf(name));
    }
    return status;
  }

  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result, IODebugContext* dbg) override {
    IOStatus status = target()->NewRandomAccessFile(name, options, result, dbg);
    if (status.ok()) {
      *result = std::make_unique<RandomAccessFile>(std::move(*result), hook_, FileOf(name));
    }
    return status;
  }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    return Wrap(name, result, target()->NewWritableFile(name, options, result, dbg), 0);
  }

  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    uint64_t size = 0;
    if (!target()->GetFileSize(name, options.io_options, &size, dbg).ok()) {
      size = 0;
    }
    return Wrap(name, result, target()->ReopenWritableFile(name, options, result, dbg), size);
  }

  IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name, const FileOptions& options,
                             std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    return Wrap(name, result, target()->ReuseWritableFile(name, old_name, options, result, dbg), 0);
  }

  IOStatus NewRandomRWFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSRandomRWFile>* result, IODebugContext* dbg) override {
    IOStatus status = target()->NewRandomRWFile(name, options, result, dbg);
    if (status.ok()) {
      *result = std::make_unique<RandomRWFile>(std::move(*result), hook_, FileOf(name));
    }
    return status;
  }

  IOStatus NewDirectory(const std::string& name, const IOOptions& options, std::unique_ptr<FSDirectory>* result,
                        IODebugContext* dbg) override {
    IOStatus status = target()->NewDirectory(name, options, result, dbg);
    if (status.ok()) {
      FSDirectory* const directory = result->get();
      *result = std::make_unique<Directory>(std::move(*result), directory, hook_);
    }
    return status;
  }

  IOStatus SyncFile(const std::string& name, const FileOptions& file_options, const IOOptions& options, bool use_fsync,
                    IODebugContext* dbg) override {
    return hook_->Do(kSync, FileOf(name), options, 0, 0, [&](uint64_t*) {
      return target()->SyncFile(name, file_options, options, use_fsync, dbg);
    });
  }

  IOStatus DeleteFile(const std::string& name, const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kDelete, FileOf(name), options, 0, 0,
                     [&](uint64_t*) { return target()->DeleteFile(name, options, dbg); });
  }

  IOStatus Truncate(const std::string& name, size_t size, const IOOptions& options, IODebugContext* dbg) override {
    return hook_->Do(kDelete, FileOf(name), options, size, 0,
                     [&](uint64_t*) { return target()->Truncate(name, size, options, dbg); });
  }

  void SupportedOps(int64_t& operations) override {
    target()->SupportedOps(operations);
    for (auto past_the_hook : {kAsyncIO, kFSBuffer, kFSPrefetch}) {
      operations &= ~(int64_t{1} << past_the_hook);
    }
  }

 private:
  IOStatus Wrap(const std::string& name, std::unique_ptr<FSWritableFile>* result, IOStatus status, uint64_t size) {
    if (status.ok()) {
      *result = std::make_unique<WritableFile>(std::move(*result), hook_, FileOf(name), size);
    }
    return status;
  }

  const SharedHook hook_;
};

}  // namespace
}  // namespace entremet

// An environment over the default one's threads and clock whose files ask `hook`. Takes over the hook's context, which
// is dropped with the last file. The caller destroys it with rocksdb_env_destroy.
extern "C" rocksdb_env_t* entremet_env_new(const entremet_hook* hook) {
  auto shared = std::make_shared<const entremet::Hook>(*hook);
  auto files = std::make_shared<entremet::HookedFileSystem>(FileSystem::Default(), std::move(shared));
  auto env = NewCompositeEnv(files);
  return new rocksdb_env_t{env.release(), false};
}
