// CRUD, watch and an informer with `@kubernetes/client-node`; the kubeconfig comes from the environment.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const k8s = createRequire(process.env.NODE_PATH + '/')('@kubernetes/client-node');

const config = new k8s.KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const namespace = 'default';

async function refused(promise, code, reason) {
  try {
    await promise;
  } catch (error) {
    assert.equal(error.code, code);
    const status = typeof error.body === 'string' ? JSON.parse(error.body) : error.body;
    assert.equal(status.reason, reason);
    return;
  }
  assert.fail(`not refused with ${code}`);
}

const settings = { metadata: { name: 'settings', labels: { app: 'js' } }, data: { a: '1' } };
const made = await core.createNamespacedConfigMap({ namespace, body: settings });
assert.ok(made.metadata.uid && made.metadata.creationTimestamp instanceof Date);
await refused(core.createNamespacedConfigMap({ namespace, body: settings }), 409, 'AlreadyExists');

const read = await core.readNamespacedConfigMap({ namespace, name: 'settings' });
read.data.b = '2';
const replaced = await core.replaceNamespacedConfigMap({ namespace, name: 'settings', body: read });
assert.deepEqual(replaced.data, { a: '1', b: '2' });
await refused(core.replaceNamespacedConfigMap({ namespace, name: 'settings', body: read }), 409, 'Conflict');
const operations = [{ op: 'replace', path: '/data/a', value: '3' }];
const patched = await core.patchNamespacedConfigMap({ namespace, name: 'settings', body: operations });
assert.deepEqual(patched.data, { a: '3', b: '2' });

const template = { metadata: { labels: { app: 'js' } }, spec: { containers: [{ name: 'web', image: 'example.com/web:1' }] } };
const spec = { replicas: 2, selector: { matchLabels: { app: 'js' } }, template };
const deployment = await apps.createNamespacedDeployment({ namespace, body: { metadata: { name: 'web' }, spec } });
assert.equal(deployment.spec.strategy.type, 'RollingUpdate');
const scale = await apps.readNamespacedDeploymentScale({ namespace, name: 'web' });
assert.equal(scale.spec.replicas, 2);

const list = await core.listNamespacedConfigMap({ namespace, labelSelector: 'app=js' });
assert.deepEqual(list.items.map((item) => item.metadata.name), ['settings']);

// An informer hears of what is there, of a change and of the end.
const path = `/api/v1/namespaces/${namespace}/configmaps`;
const informer = k8s.makeInformer(config, path, () => core.listNamespacedConfigMap({ namespace, labelSelector: 'app=js' }), 'app=js');
const heard = [];
const complete = new Promise((resolve, reject) => {
  for (const event of ['add', 'update', 'delete']) {
    informer.on(event, (object) => {
      heard.push(`${event} ${object.metadata.name}`);
      if (event === 'add') {
        const body = [{ op: 'add', path: '/data/seen', value: 'yes' }];
        core.patchNamespacedConfigMap({ namespace, name: 'settings', body }).catch(reject);
      } else if (event === 'update') {
        core.deleteNamespacedConfigMap({ namespace, name: 'settings' }).catch(reject);
      } else {
        resolve();
      }
    });
  }
  informer.on('error', reject);
  setTimeout(() => reject(new Error(`heard only ${heard}`)), 60000).unref();
});
await informer.start();
await complete;
await informer.stop();
assert.deepEqual(heard, ['add settings', 'update settings', 'delete settings']);
await refused(core.readNamespacedConfigMap({ namespace, name: 'settings' }), 404, 'NotFound');

// Custom resources, by the client that knows no kinds.
const extensions = config.makeApiClient(k8s.ApiextensionsV1Api);
const schema = { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties: { size: { type: 'integer', _default: 3 } } } } } };
await extensions.createCustomResourceDefinition({
  body: {
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com', scope: 'Namespaced', names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  },
});
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const widgets = { group: 'example.com', version: 'v1', namespace, plural: 'widgets' };
const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' }, spec: {} };
for (let tries = 0; ; tries++) {
  try {
    const created = await custom.createNamespacedCustomObject({ ...widgets, body: widget });
    assert.equal(created.spec.size, 3);
    break;
  } catch (error) {
    // The definition takes effect a moment after it is made.
    if (error.code !== 404 || tries > 300) throw error;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
const objects = await custom.listNamespacedCustomObject(widgets);
assert.deepEqual(objects.items.map((item) => item.metadata.name), ['w']);
console.log('ok');
process.exit(0);
