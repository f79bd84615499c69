// The device stage: what the device does, what of it was promised, and one tenant's part.

import { h, write } from "./dom.js";
import { ms, number, percent } from "./text.js";
import { pairs } from "./pairs.js";

const vops = (value) => `${number(value)} VOP/s`;

// All of it, for the first page. Hidden where there is no stage before the device and nothing to be
// said.
export class DevicePanel {
  constructor() {
    this.doubt = h("p.none");
    this.facts = h("dl.pairs");
    this.element = h("section.panel.device-panel", { "aria-label": "Device" }, h("div.panel-head", {}, h("h2", {}, "Device")), this.facts, this.doubt);
  }

  update(server) {
    const { device, device_doubt: doubt } = server;
    this.element.hidden = device === undefined && doubt === undefined;
    write(this.doubt, doubt === undefined ? "" : `${doubt}.`);
    pairs(this.facts, device === undefined ? [] : told(device));
  }
}

function told(device) {
  const kept = device.overbooked_vops_per_s > 0 ? `; ${vops(device.overbooked_vops_per_s)} too many, so each gets ${percent(100 * device.reservation_scale)} %` : "";
  const latency = device.operations.filter((one) => one.ios > 0).map((one) => `${one.operation} ${ms((1000 * one.device_s) / one.ios)} ms`);
  return [
    ["used", vops(device.used_vops_per_s)],
    ["can do now", `${vops(device.capacity_vops_per_s)}${device.missing_vops_per_s > 0 ? `; ${vops(device.missing_vops_per_s)} below its floor` : ""}`],
    ["promisable", `${vops(device.promisable_vops_per_s)} to such requests, ${vops(device.floor_vops_per_s)} to any`],
    ["reserved", `${vops(device.reserved_vops_per_s)}${kept}`],
    ["outstanding", `${device.in_flight} of ${device.permits}, ${number(device.waiting)} waiting`],
    ["latency, mean since the start", latency.join(", ") || "–"],
  ];
}

// One tenant's part: VOPs a second, what a request costs, what they went into.
export class TenantDevice {
  constructor() {
    this.facts = h("dl.pairs");
    this.element = h("section.panel", { "aria-label": "At the device", hidden: "" }, h("div.panel-head", {}, h("h2", {}, "At the device")), this.facts);
  }

  update(device) {
    this.element.hidden = device === undefined;
    if (device === undefined) return;
    const total = device.used.reduce((sum, one) => sum + one.vops, 0);
    const largest = [...device.used].sort((a, b) => b.vops - a.vops).slice(0, 6);
    const use = largest.map((one) => [one.class === "none" ? one.activity : `${one.activity} for ${one.class}`, `${percent((100 * one.vops) / total)} % of all VOPs since the start`]);
    const costs = device.costs.filter((one) => one.measured).map((one) => [`a ${one.request} of 1 KiB`, `${number(one.direct)} VOP${one.request === "put" ? `, flushed ${number(one.flush)}, compacted ${number(one.compaction)}` : ""}`]);
    const reserved = device.reserved_vops_per_s > 0 ? `${vops(device.reserved_vops_per_s)} needed, ${vops(device.allocated_vops_per_s)} given` : "none";
    pairs(this.facts, [["used", vops(device.used_vops_per_s)], ["reserved", reserved], ...costs, ...use]);
  }
}
