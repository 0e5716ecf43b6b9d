import { PageTitle } from '../parts/panel.tsx'

export const OwnerPage = () => <PageTitle title="Owner" />
