// Commands, input, a port, a copy and logs of a pod with `@kubernetes/client-node`; the kubeconfig comes from the environment.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

const k8s = createRequire(process.env.NODE_PATH + '/')('@kubernetes/client-node');

const config = new k8s.KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const [namespace, pod, container] = ['default', 'one', 'main'];

// The outputs and the final status of a command.
async function run(command, input) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const outputs = Promise.all([text(stdout), text(stderr)]);
  const status = await new Promise((resolve, reject) =>
    new k8s.Exec(config).exec(namespace, pod, container, command, stdout, stderr, input, false, resolve).catch(reject));
  stdout.end();
  stderr.end();
  return [status, ...(await outputs)];
}

const [status, out, complaint] = await run(['echo', 'hello', 'two words'], null);
assert.deepEqual([status.status, out, complaint], ['Success', 'hello two words\n', '']);

const [failure, partial, error] = await run(['fail', '42'], null);
assert.deepEqual([failure.status, failure.reason], ['Failure', 'NonZeroExitCode']);
assert.equal(failure.details.causes[0].message, '42');
assert.deepEqual([partial, error], ['some output\n', 'some complaint\n']);

const much = '0123456789'.repeat(50000);
const [, counted] = await run(['sh', '-c', `head -c ${much.length} | wc -c`], Readable.from([much]));
assert.equal(counted.trim(), String(much.length));

const attached = new PassThrough();
const attachment = await new k8s.Attach(config).attach(namespace, pod, container, attached, null, null, false);
assert.equal((await text(await ended(attachment, attached))), 'first\nsecond\n');

// The stream, once its connection is closed.
function ended(connection, stream) {
  return new Promise((resolve) => connection.on('close', () => resolve(stream.end())));
}

const answers = new PassThrough();
const input = new PassThrough();
const forward = await new k8s.PortForward(config).portForward(namespace, pod, [8080], answers, null, input);
input.write('ping');
let answer = '';
for await (const piece of answers) {
  answer += piece;
  if (answer.length >= '8080:ping'.length) break;
}
assert.equal(answer, '8080:ping');
forward.close();

const logs = new PassThrough();
await new k8s.Log(config).log(namespace, pod, container, logs, { follow: true });
assert.equal(await text(logs), 'main line 1\nmain line 2\nmain line 3\n');
console.log('ok');
