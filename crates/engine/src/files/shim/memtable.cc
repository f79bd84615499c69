// A memtable for what the engine writes: objects (`o<key>`) by hash, every other record in RocksDB's skip list.
//
// To find an object's place in a skip list was the largest part of a SET. Nobody asks for objects in order but walks
// over the whole keyspace and the flush, so they are put in order there (objects.h). Records of collections, pieces of
// strings and the index of expiries are read in order all the time, on cores, too: their ranges lie before or behind
// all objects, and an iterator that steps out of such a range onto the first or last object orders nothing.

#include <rocksdb/memtablerep.h>
#include <rocksdb/options.h>

#include <cstring>
#include <memory>
#include <random>

#include "db/lookup_key.h"
#include "memory/arena.h"
#include "objects.h"

using namespace ROCKSDB_NAMESPACE;

// Layout of rocksdb_options_t in RocksDB's db/c.cc, which no header declares (see file_system.cc).
struct rocksdb_options_t {
  Options rep;
};

namespace entremet {
namespace {

// Where a user key lies from the objects: before them, among them, behind them.
int SideOf(const Slice& user_key, char object) {
  if (user_key.empty()) return -1;
  const auto first = static_cast<uint8_t>(user_key[0]), objects = static_cast<uint8_t>(object);
  return first < objects ? -1 : first > objects;
}

// All objects in order, from runs.
class Walk {
 public:
  bool IsReady() const { return !runs_.empty(); }

  void Begin(Objects::Runs runs) {
    runs_ = std::move(runs);
    places_.resize(runs_.size());
  }

  // To the first entry at or behind `internal`; null: there is none.
  const char* Seek(const Slice& internal) {
    Split(internal);
    forward_ = true;
    return Least();
  }

  // To the last one at or before it.
  const char* SeekBack(const Slice& internal) {
    const char* at = Seek(internal);
    return at != nullptr && Compare(InternalKey(at), internal) == 0 ? at : Below(internal);
  }

  // To the last one before it.
  const char* Below(const Slice& internal) {
    Split(internal);
    forward_ = false;
    return Greatest();
  }

  // To the one behind `at`, where it is.
  const char* Next(const char* at) {
    if (!forward_) Seek(InternalKey(at));
    const auto& entries = *runs_[chosen_];
    const size_t place = ++places_[chosen_];
    // Entries lie in the order in which they came.
    if (place + kAhead < entries.size()) __builtin_prefetch(entries[place + kAhead]);
    return Least();
  }

  // To the one before `at`, where it is.
  const char* Prev(const char* at) {
    if (forward_) return Below(InternalKey(at));
    --places_[chosen_];
    return Greatest();
  }

 private:
  // Places are of the first entries at or behind `internal`.
  void Split(const Slice& internal) {
    for (size_t run = 0; run < runs_.size(); ++run) {
      const auto& entries = *runs_[run];
      const auto before = [](const char* entry, const Slice& key) { return Compare(InternalKey(entry), key) < 0; };
      places_[run] = std::lower_bound(entries.begin(), entries.end(), internal, before) - entries.begin();
    }
  }

  // Forward, a place is of the entry that comes next of its run.
  const char* Least() {
    const char* least = nullptr;
    for (size_t run = 0; run < runs_.size(); ++run) {
      if (places_[run] == runs_[run]->size()) continue;
      const char* entry = (*runs_[run])[places_[run]];
      if (least == nullptr || Before(entry, least)) {
        least = entry;
        chosen_ = run;
      }
    }
    return least;
  }

  // Backward, it is behind it.
  const char* Greatest() {
    const char* greatest = nullptr;
    for (size_t run = 0; run < runs_.size(); ++run) {
      if (places_[run] == 0) continue;
      const char* entry = (*runs_[run])[places_[run] - 1];
      if (greatest == nullptr || Before(greatest, entry)) {
        greatest = entry;
        chosen_ = run;
      }
    }
    return greatest;
  }

  // So far ahead memory is fetched: a flush needs about as long for so many entries as memory for one.
  static constexpr size_t kAhead = 8;

  Objects::Runs runs_;
  std::vector<size_t> places_;
  size_t chosen_ = 0;
  bool forward_ = true;
};

class ObjectIterator : public MemTableRep::Iterator {
 public:
  ObjectIterator(Objects& objects, const std::atomic<bool>& settled, MemTableRep& rest, char object, Arena* arena)
      : objects_(objects), settled_(settled), object_(object), arena_(arena), rest_(rest.GetIterator(arena)) {}

  ~ObjectIterator() override {
    if (arena_ != nullptr) {
      rest_->~Iterator();
    } else {
      delete rest_;
    }
  }

  bool Valid() const override { return at_ != nullptr; }
  const char* key() const override { return at_; }

  void SeekToFirst() override {
    rest_->SeekToFirst();
    Up(-1);
  }

  void SeekToLast() override {
    rest_->SeekToLast();
    Down(1);
  }

  void Seek(const Slice& internal_key, const char* memtable_key) override {
    const Slice internal = memtable_key != nullptr ? InternalKey(memtable_key) : internal_key;
    const int side = SideOf(KeyIn(internal), object_);
    if (side == 0 && OnObject(Ordered().Seek(internal))) return;
    rest_->Seek(internal_key, memtable_key);
    Up(side < 0 ? -1 : 1);
  }

  void SeekForPrev(const Slice& internal_key, const char* memtable_key) override {
    const Slice internal = memtable_key != nullptr ? InternalKey(memtable_key) : internal_key;
    const int side = SideOf(KeyIn(internal), object_);
    if (side == 0 && OnObject(Ordered().SeekBack(internal))) return;
    rest_->SeekForPrev(internal_key, memtable_key);
    Down(side > 0 ? 1 : -1);
  }

  void Next() override {
    if (!among_) {
      const int side = SideOf(KeyIn(InternalKey(at_)), object_);
      rest_->Next();
      return Up(side);
    }
    const Slice left = InternalKey(at_);
    if (OnObject(Behind(left))) return;
    rest_->Seek(left, nullptr);
    Up(1);
  }

  void Prev() override {
    if (!among_) {
      const int side = SideOf(KeyIn(InternalKey(at_)), object_);
      rest_->Prev();
      return Down(side);
    }
    const Slice left = InternalKey(at_);
    Walk& walk = Ordered();
    if (OnObject(placed_ ? walk.Prev(at_) : walk.Below(left))) return;
    rest_->SeekForPrev(left, nullptr);
    Down(-1);
  }

 private:
  Walk& Ordered() {
    if (!walk_.IsReady()) walk_.Begin(objects_.InOrder(settled_.load(std::memory_order_acquire)));
    return walk_;
  }

  // The object behind the one that it stands on.
  const char* Behind(const Slice& left) {
    Walk& walk = Ordered();
    if (placed_) return walk.Next(at_);
    // An end may be told before its entry is counted, and is not in order then.
    const char* found = walk.Seek(left);
    return found == at_ ? walk.Next(at_) : found;
  }

  // Stands where the walk does.
  bool OnObject(const char* object) {
    at_ = object;
    among_ = placed_ = object != nullptr;
    return among_;
  }

  // Stands on an end of the objects, where no order is needed yet.
  void OnEnd(const char* object) {
    at_ = object;
    among_ = true;
    placed_ = false;
  }

  void OnRest() {
    at_ = rest_->Valid() ? rest_->key() : nullptr;
    among_ = false;
  }

  int RestSide() const { return rest_->Valid() ? SideOf(KeyIn(InternalKey(rest_->key())), object_) : 0; }

  // The rest has gone up from this side of the objects: they come first if it has passed them.
  void Up(int from) {
    const char* first = objects_.First();
    if (from < 0 && RestSide() >= 0 && first != nullptr) return OnEnd(first);
    OnRest();
  }

  void Down(int from) {
    const char* last = objects_.Last();
    if (from > 0 && RestSide() <= 0 && last != nullptr) return OnEnd(last);
    OnRest();
  }

  Objects& objects_;
  const std::atomic<bool>& settled_;
  const char object_;
  Arena* const arena_;
  MemTableRep::Iterator* const rest_;
  Walk walk_;
  const char* at_ = nullptr;
  // It stands on an object; and the walk stands there, too.
  bool among_ = false;
  bool placed_ = false;
};

class ObjectMemtable : public MemTableRep {
 public:
  ObjectMemtable(Allocator* allocator, std::unique_ptr<MemTableRep> rest, char object, uint64_t seed)
      : MemTableRep(allocator), rest_(std::move(rest)), objects_(allocator, seed), object_(object) {}

  // What kind of record comes is not known yet. Batches are sorted, so it is taken for one like the last.
  KeyHandle Allocate(const size_t len, char** buf) override {
    length_ = len;
    return expects_object_ ? MemTableRep::Allocate(len, buf) : rest_->Allocate(len, buf);
  }

  void Insert(KeyHandle handle) override { InsertKey(handle); }

  bool InsertKey(KeyHandle handle) override {
    const auto* entry = static_cast<const char*>(handle);
    const bool expected = expects_object_;
    expects_object_ = SideOf(KeyIn(InternalKey(entry)), object_) == 0;
    if (expects_object_) {
      objects_.Insert(entry);
      return true;
    }
    if (expected) {
      char* copy = nullptr;
      handle = rest_->Allocate(length_, &copy);
      memcpy(copy, entry, length_);
    }
    return rest_->InsertKey(handle);
  }

  bool Contains(const char* key) const override {
    const Slice internal = InternalKey(key);
    if (SideOf(KeyIn(internal), object_) != 0) return rest_->Contains(key);
    bool found = false;
    objects_.Each(internal, [&](const char* entry) {
      found = TagOf(InternalKey(entry)) == TagOf(internal);
      return false;
    });
    return found;
  }

  void Get(const LookupKey& key, void* callback_args, bool (*callback)(void* arg, const char* entry)) override {
    if (SideOf(key.user_key(), object_) != 0) return rest_->Get(key, callback_args, callback);
    objects_.Each(key.internal_key(), [&](const char* entry) { return callback(callback_args, entry); });
  }

  void MarkReadOnly() override {
    settled_.store(true, std::memory_order_release);
    rest_->MarkReadOnly();
  }

  void MarkFlushed() override { rest_->MarkFlushed(); }

  uint64_t ApproximateNumEntries(const Slice& start, const Slice& end) override {
    return rest_->ApproximateNumEntries(start, end);
  }

  size_t ApproximateMemoryUsage() override { return rest_->ApproximateMemoryUsage() + objects_.OrderBytes(); }

  MemTableRep::Iterator* GetIterator(Arena* arena) override {
    if (arena == nullptr) return new ObjectIterator(objects_, settled_, *rest_, object_, nullptr);
    void* memory = arena->AllocateAligned(sizeof(ObjectIterator));
    return new (memory) ObjectIterator(objects_, settled_, *rest_, object_, arena);
  }

 private:
  const std::unique_ptr<MemTableRep> rest_;
  Objects objects_;
  const char object_;
  std::atomic<bool> settled_{false};
  bool expects_object_ = true;
  size_t length_ = 0;
};

class ObjectMemtables : public MemTableRepFactory {
 public:
  explicit ObjectMemtables(char object) : object_(object) {
    std::random_device random;
    seed_ = uint64_t{random()} << 32 | random();
  }

  const char* Name() const override { return "EntremetObjectMemtables"; }

  using MemTableRepFactory::CreateMemTableRep;
  MemTableRep* CreateMemTableRep(const MemTableRep::KeyComparator& compare, Allocator* allocator,
                                 const SliceTransform* transform, Logger* logger) override {
    std::unique_ptr<MemTableRep> rest(skip_lists_.CreateMemTableRep(compare, allocator, transform, logger));
    return new ObjectMemtable(allocator, std::move(rest), object_, seed_);
  }

 private:
  const char object_;
  uint64_t seed_;
  SkipListFactory skip_lists_;
};

}  // namespace
}  // namespace entremet

// Has databases of these options keep records whose keys begin with `object` as objects. REQUIRES: keys are ordered by
// bytes, and one thread writes at a time.
extern "C" void entremet_object_memtables(rocksdb_options_t* options, char object) {
  options->rep.memtable_factory = std::make_shared<entremet::ObjectMemtables>(object);
}
