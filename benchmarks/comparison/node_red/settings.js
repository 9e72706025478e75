// Node-RED's defaults, without what listens or asks beyond the hook.
module.exports = {
  uiHost: "127.0.0.1",
  uiPort: process.env.PORT,
  flowFile: "flows.json",
  credentialSecret: false,
  httpAdminRoot: false,
  diagnostics: { enabled: false, ui: false },
  telemetry: { enabled: false, updateNotification: false },
  logging: { console: { level: "warn", metrics: false, audit: false } },
};
